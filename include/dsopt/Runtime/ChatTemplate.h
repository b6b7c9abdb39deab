//===- ChatTemplate.h - conversations as text -------------------*- C++ -*-===//
//
// The part of Jinja that chat templates are written in, as transformers sets it
// up. What is not part of it is an Error of status 1 with its name and line.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_CHATTEMPLATE_H
#define DSOPT_RUNTIME_CHATTEMPLATE_H

#include <ctime>
#include <map>
#include <memory>
#include <string>

namespace dsopt::runtime {

class ChatTemplate {
public:
  /// `name` is what messages call it.
  explicit ChatTemplate(const std::string &source, std::string name = "the chat template");
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate &) = delete;

  struct Settings {
    std::map<std::string, std::string> tokens; ///< bos_token, eos_token, ...
    bool addGenerationPrompt = true;
    std::string tools;     ///< a list in JSON, empty: none
    std::string variables; ///< an object in JSON, of what else the template may ask for; empty: none
    std::time_t now = 0;   ///< what strftime_now says; 0: the time
  };
  /// `messages` is a list in JSON: [{"role":"user","content":"Hello"}, ...].
  std::string render(const std::string &messages, const Settings &settings) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_CHATTEMPLATE_H
