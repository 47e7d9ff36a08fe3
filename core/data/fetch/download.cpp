#include "core/data/fetch/download.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <memory>

#include "core/base/error.h"

namespace sweep {
namespace {

constexpr long kConnectSeconds = 30;
constexpr long kStandstillSeconds = 60;  // with less than kStandstillBytes a second
constexpr long kStandstillBytes = 1000;
constexpr long kMostRedirections = 10;

// The functions of libcurl that are used here, opened once and until the process ends.
struct Curl {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;

  Curl() {
    // The versions that use OpenSSL and GnuTLS have one interface.
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
      if (library_ == nullptr) library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library_ == nullptr) {
      throw DataError(std::string("downloading needs libcurl, which cannot be opened: ") + ::dlerror() +
                      ". Install it with `apt-get install libcurl4`");
    }
    find("curl_global_init", global_init);
    find("curl_easy_init", easy_init);
    find("curl_easy_cleanup", easy_cleanup);
    find("curl_easy_setopt", easy_setopt);
    find("curl_easy_perform", easy_perform);
    find("curl_easy_getinfo", easy_getinfo);
    find("curl_easy_strerror", easy_strerror);
    if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw DataError("libcurl cannot be set up");
  }

 private:
  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr) throw DataError(std::string("libcurl has no function ") + name);
  }
  void* library_ = nullptr;
};

// What the callbacks of a transfer share. They are called by C code, so no exception may leave them.
struct Transfer {
  const DownloadOptions& options;
  const std::function<void(std::span<const std::uint8_t>)>& take;
  std::uint64_t done = 0;
  bool ended = false;  // by options.progress
  bool too_large = false;
  std::exception_ptr error{};
};

// Returning another number than that of the bytes ends the transfer.
std::size_t write_callback(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.done += count;
  transfer.too_large = transfer.done > transfer.options.most_bytes;
  if (transfer.too_large) return CURL_WRITEFUNC_ERROR;
  try {
    transfer.take({reinterpret_cast<const std::uint8_t*>(bytes), count});
    return count;
  } catch (...) {
    transfer.error = std::current_exception();
    return CURL_WRITEFUNC_ERROR;
  }
}

// Returning anything but 0 ends the transfer.
int progress_callback(void* user, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  const auto unsigned_of = [](curl_off_t count) {
    return static_cast<std::uint64_t>(std::max<curl_off_t>(count, 0));
  };
  try {
    transfer.ended =
        transfer.options.progress && !transfer.options.progress(unsigned_of(done), unsigned_of(total));
  } catch (...) {
    transfer.error = std::current_exception();
  }
  return transfer.ended || transfer.error ? 1 : 0;
}

std::string too_large_text(const DownloadOptions& options) {
  return "has more than " + std::to_string(options.most_bytes) + " bytes, which is the most that is allowed";
}

std::string problem_of(const Curl& curl, CURL* handle, CURLcode code, const char* details) {
  const std::string detail = *details != '\0' ? details : curl.easy_strerror(code);
  switch (code) {
    case CURLE_HTTP_RETURNED_ERROR: {
      long status = 0;
      curl.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
      return "the server answers with status " + std::to_string(status) +
             (status == 404 ? ": there is no such file" : "");
    }
    case CURLE_FILE_COULDNT_READ_FILE:
      return "there is no such file, or it cannot be read";
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return "cannot be reached (" + detail + "): is there a network?";
    case CURLE_OPERATION_TIMEDOUT:
      return "stands still (" + detail + ")";
    default:
      return "cannot be downloaded: " + detail;
  }
}

}  // namespace

bool download(const std::string& url, const DownloadOptions& options,
              const std::function<void(std::span<const std::uint8_t>)>& take) {
  static const Curl curl;
  const std::unique_ptr<CURL, decltype(curl.easy_cleanup)> handle(curl.easy_init(), curl.easy_cleanup);
  if (handle == nullptr) throw DataError("libcurl cannot be set up");
  Transfer transfer{.options = options, .take = take};
  char details[CURL_ERROR_SIZE] = "";
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode code = (*curl.easy_setopt)(handle.get(), option, value);
    if (code != CURLE_OK)
      throw DataError(url + ": cannot be downloaded: libcurl: " + curl.easy_strerror(code));
  };
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(details));
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "https,file");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMostRedirections);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_TIME, kStandstillSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, kStandstillBytes);
  set(CURLOPT_USERAGENT, "sweep");
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(options.most_bytes));
  set(CURLOPT_WRITEFUNCTION, &write_callback);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &progress_callback);
  set(CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl.easy_perform(handle.get());
  if (transfer.error) std::rethrow_exception(transfer.error);
  if (transfer.ended) return false;
  if (transfer.too_large || code == CURLE_FILESIZE_EXCEEDED)
    throw DataError(url + ": " + too_large_text(options));
  if (code != CURLE_OK) throw DataError(url + ": " + problem_of(curl, handle.get(), code, details));
  return true;
}

}  // namespace sweep
