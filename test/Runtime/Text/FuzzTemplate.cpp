//===- FuzzTemplate.cpp - chat templates ----------------------------------===//

#include "Fuzz.h"
#include "dsopt/Runtime/ChatTemplate.h"

using namespace dsopt::runtime;
using namespace dsopt::test;

std::vector<std::string> dsopt::test::fuzzSeeds() {
  return {"{% for m in messages %}{{ '<' + m['role'] + '>' + m.content | trim }}{% if not loop.last %}, {% "
          "endif %}{% endfor %}",
          "{%- set ns = namespace(n=0) -%}{% macro f(a, b=2) %}{{ a ~ b }}{% endmacro %}{% set ns.n = ns.n + "
          "1 %}{{ f(ns.n) | upper }}",
          "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | "
          "tojson(indent=2) }}",
          "{{ 'a b'.split()[::-1] | join('-') }}{{ {'a': [1, 2.5, none]}.items() | list }}{# x #}{% raw "
          "%}{{{% endraw %}",
          "{% with x = range(3) %}{% filter upper %}{{ x | sum }}{% endfilter %}{% endwith %}{{ 7 // -2 ** 2 "
          "% 3 }}{{ 'x' if y is defined else 'z' }}",
          "{% for a, b in [[1, 2]] if a < b %}{{ loop.cycle('x', 'y') }}{% break %}{% else %}e{% endfor %}{% "
          "set t %}x{% endset %}{{ t * 3 }}"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    ChatTemplate::Settings settings;
    settings.now = 1;
    settings.tokens = {{"bos_token", "<s>"}};
    ChatTemplate(std::string(viewOf(data, size)))
        .render(R"([{"role":"user","content":"a b"},{"role":"assistant","content":null,"x":[1,{"y":2.5}]}])",
                settings);
  } catch (const Error &) {
  }
  return 0;
}
