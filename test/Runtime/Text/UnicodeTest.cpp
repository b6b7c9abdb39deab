//===- UnicodeTest.cpp - what characters are ------------------------------===//

#include "Text/Unicode.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime::text;

TEST(Unicode, NormalForms) {
  EXPECT_EQ(normalize("e\xCC\x81", NormalForm::C), "\xC3\xA9");
  EXPECT_EQ(normalize("\xC3\xA9", NormalForm::D), "e\xCC\x81");
  EXPECT_EQ(normalize("\xEF\xAC\x81\xC2\xB2", NormalForm::KC), "fi2");
  EXPECT_EQ(normalize("\xEF\xAC\x81", NormalForm::C), "\xEF\xAC\x81");
  // U+0899 has come with Unicode 14: marks are not ordered across it, nor put together.
  EXPECT_EQ(normalize("e\xE0\xA2\x99\xCC\x81", NormalForm::C), "e\xE0\xA2\x99\xCC\x81");
  EXPECT_EQ(normalize("a\xCC\x81\xCC\xA3", NormalForm::D), "a\xCC\xA3\xCC\x81");
}

TEST(Unicode, Cases) {
  EXPECT_EQ(toLower("ÄÖ ΣΑΣ"), "äö σασ");
  EXPECT_EQ(toLower("\xC4\xB0"), "i\xCC\x87");
  EXPECT_EQ(toLower("\xE1\xB2\x89"), "\xE1\xB2\x8A"); // U+1C89, of Unicode 16
  EXPECT_EQ(toUpper("straße é"), "STRASSE É");
}

TEST(Unicode, Categories) {
  EXPECT_TRUE(isPunctuation('$'));
  EXPECT_TRUE(isPunctuation(0x3002));
  EXPECT_FALSE(isPunctuation(0x20AC));
  EXPECT_FALSE(isPunctuation(0x2E43)); // Unicode 9
  EXPECT_TRUE(isNonspacingMark(0x301));
  EXPECT_FALSE(isNonspacingMark(0x898));
  EXPECT_TRUE(isMark(0x903));
  EXPECT_TRUE(isControl(0xAD));
  EXPECT_FALSE(isControl('\n'));
  EXPECT_TRUE(isNumeric(0x2163));
  EXPECT_TRUE(isWord(0x31350)); // Unicode 15
  EXPECT_TRUE(isChinese(0x4E00));
  EXPECT_TRUE(isWhiteSpace(0x3000));
  EXPECT_FALSE(isWhiteSpace(0x200B));
}

TEST(Unicode, Graphemes) {
  EXPECT_EQ(graphemeEnd("e\xCC\x81x", 0), 3u);
  EXPECT_EQ(graphemeEnd("\r\nx", 0), 2u);
  EXPECT_EQ(graphemeEnd("ab", 0), 1u);
}
