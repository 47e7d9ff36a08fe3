// The messages of exceptions.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace sweep::test {

/// The message of the exception that `action` throws; fails the test if it throws nothing or something else.
template <typename Exception, typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Exception& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

}  // namespace sweep::test
