//===- ChatTemplateTest.cpp - conversations as text -----------------------===//
//
// test/Conformance compares with jinja2; here is what does not depend on it.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Runtime/ChatTemplate.h"
#include "dsopt/Runtime/Error.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime;

static std::string render(const std::string &source, const std::string &variables = "") {
  ChatTemplate::Settings settings;
  settings.tokens = {{"bos_token", "<s>"}};
  settings.variables = variables;
  settings.now = 86400 * 45; // 15 February 1970
  return ChatTemplate(source).render(
      R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}])", settings);
}

static std::string errorOf(const std::string &source) {
  try {
    render(source);
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusInput);
    return error.what();
  }
  return "";
}

TEST(ChatTemplate, Renders) {
  EXPECT_EQ(render("{{ bos_token }}{% for m in messages %}[{{ m.role }}: {{ m['content'] }}]{% endfor %}\n"),
            "<s>[user: Hi][assistant: Ho]");
  EXPECT_EQ(render("{% if add_generation_prompt %}go{% endif %}{{ tools is none }}"), "goTrue");
  EXPECT_EQ(render("{{ x.y | tojson }}", R"({"x":{"y":{"b":1,"a":[1.5,null,true]}}})"),
            R"({"b": 1, "a": [1.5, null, true]})");
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y') }}"), "15 Feb 1970");
  EXPECT_EQ(render("{% generation %}a{% endgeneration %}"), "a");
}

TEST(ChatTemplate, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(errorOf("a\nb\n{{ 1 | shuffle }}"),
            "the chat template: line 3: the filter shuffle is not supported");
  EXPECT_EQ(errorOf("\n{{ raise_exception('no system') }}"), "the chat template: line 2: no system");
  EXPECT_EQ(errorOf("{{ nothing.there }}"), "the chat template: line 1: 'nothing' is undefined");
  EXPECT_EQ(errorOf("{{ messages[0].name.first }}"),
            "the chat template: line 1: 'dict' has no member 'name', which is undefined");
  EXPECT_EQ(errorOf("a\xFF"), "the chat template: byte 1 (0xFF) is not UTF-8");
  EXPECT_EQ(errorOf("{{ '\\x"), "the chat template: line 1: \\x is no character");
  EXPECT_EQ(errorOf("{% extends 'x' %}"),
            "the chat template: line 1: the statement extends is not supported");
}

TEST(ChatTemplate, Ends) {
  EXPECT_NE(errorOf("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
                .find("does not end within"),
            std::string::npos);
  EXPECT_NE(errorOf("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").find("in each other"),
            std::string::npos);
  EXPECT_NE(
      errorOf("{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}").find("its text is larger than"),
      std::string::npos);
  EXPECT_NE(errorOf("{% set ns = namespace(a=1) %}{% set ns.a = [ns] %}{{ ns }}")
                .find("a namespace in a namespace"),
            std::string::npos);
  for (const char *inside : {"[ns.a]", "{'a': ns.a}", "(ns.a, 1)"})
    EXPECT_NE(errorOf("{% set ns = namespace(a={}) %}{% for i in range(99999) %}{% set ns.a = " +
                      std::string(inside) + " %}{% endfor %}")
                  .find("values in each other"),
              std::string::npos)
        << inside;
  EXPECT_NE(
      errorOf("{% set ns = namespace(a=[1]) %}{% for i in range(999) %}{% set ns.a = [ns.a.count] if i is "
              "even else [ns.a] %}{% endfor %}")
          .find("values in each other"),
      std::string::npos);
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i)
    sum += " + 1";
  EXPECT_NE(errorOf(sum + " }}").find("in one tag"), std::string::npos);
  std::string blocks;
  for (int i = 0; i < 500; ++i)
    blocks += "{% if 1 %}";
  EXPECT_NE(errorOf(blocks).find("in each other"), std::string::npos);
}
