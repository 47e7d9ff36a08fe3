#include "runmanager/report/page.h"

#include <regex>

#include "core/json/json_text.h"
#include "tests/support/test.h"

namespace sweep::page_test {

using Json = nlohmann::ordered_json;

constexpr const char* kHostile = "</script><img src=x onerror=\"alert('&')\"><!--";

// The texts between the tags of all elements of this name that have the attributes.
std::vector<std::string> elements(const std::string& page, const std::string& begin, const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t from = at + begin.size();
    found.push_back(page.substr(from, page.find(end, from) - from));
  }
  return found;
}

TEST(HtmlText, IsShownAsItIs) {
  EXPECT_EQ(html_text(kHostile),
            "&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;&amp;&#39;)&quot;&gt;&lt;!--");
}

TEST(ScriptJson, EndsNoElementAndStaysTheSameValue) {
  const Json json = {{kHostile, {kHostile, 1.5, nullptr}}};
  const std::string text = script_json(json);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(parse_json_text(text, "the test"), json);
}

TEST(ScriptJson, ReplacesBytesThatAreNotUtf8) { EXPECT_EQ(script_json(Json("\xff")), "\"\xEF\xBF\xBD\""); }

TEST(ScriptDigest, IsThatOfTheSpecification) {
  // Content Security Policy Level 3, 8.4: the digest of alert('Hello, world.');
  EXPECT_EQ(script_digest("alert('Hello, world.');"), "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
}

TEST(PngUri, IsBase64) { EXPECT_EQ(png_uri("PNG!"), "data:image/png;base64,UE5HIQ=="); }

TEST(HtmlPage, AllowsItsOwnScriptsOnly) {
  const std::string page = html_page("s", Json::object());
  const std::vector<std::string> policies =
      elements(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"", "\">");
  ASSERT_EQ(policies.size(), 1u);
  EXPECT_THAT(policies[0], HasSubstr("default-src 'none'; img-src data:;"));
  EXPECT_THAT(policies[0], Not(HasSubstr("unsafe-eval")));
  EXPECT_THAT(policies[0], Not(HasSubstr("http")));
  const std::vector<std::string> scripts = elements(page, "<script>", "</script>");
  EXPECT_EQ(scripts.size(), has_vega() ? 5u : 4u);
  for (const std::string& script : scripts)
    EXPECT_THAT(policies[0], HasSubstr("'" + script_digest(script) + "'"));
}

TEST(HtmlPage, ShowsHostileTextsAsTexts) {
  const Json model = {{"title", kHostile}};
  const std::string page = html_page(kHostile, model), plain = html_page("s", {{"title", "s"}});
  EXPECT_EQ(elements(page, "<script", ">").size(), elements(plain, "<script", ">").size());
  EXPECT_EQ(elements(page, "<img", ">").size(), elements(plain, "<img", ">").size());
  const std::vector<std::string> models =
      elements(page, "<script type=\"application/json\" id=\"model\">", "</script>");
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(parse_json_text(models[0], "the page"), model);
}

TEST(HtmlPage, FillsEachPlaceOnce) {
  const std::string page = html_page("{{MODEL}}", {{"title", "{{STYLE}}"}});
  EXPECT_THAT(page, HasSubstr("<h1 id=\"title\">{{MODEL}}</h1>"));
  EXPECT_THAT(page, HasSubstr("{\"title\":\"{{STYLE}}\"}"));
}

TEST(HtmlPage, NamesNothingOutsideOfIt) {
  const std::string page = html_page("s", Json::object());
  const std::string head = page.substr(0, page.find("<script"));
  EXPECT_FALSE(std::regex_search(head, std::regex("(src|href)=\"(?!#)")));
  EXPECT_THAT(head, Not(HasSubstr("url(")));
  EXPECT_THAT(head, Not(HasSubstr("@import")));
}

TEST(HtmlPage, KeepsTheLicencesOfVega) {
  if (!has_vega()) GTEST_SKIP() << "built without Vega";
  EXPECT_THAT(std::string(embedded_file("vega.js")), HasSubstr("UW Interactive Data Lab"));
  EXPECT_THAT(html_page("s", Json::object()), HasSubstr("Redistributions in binary form must reproduce"));
}

}  // namespace sweep::page_test
