#include "tests/cache/support.hpp"

#include "cache/usage.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace jitney::cache::testing {

namespace fs = std::filesystem;

TempDir::TempDir(Place place) {
    const bool in_memory = place == Place::memory && ::access("/dev/shm", W_OK | X_OK) == 0;
    path_ = ((in_memory ? fs::path("/dev/shm") : fs::temp_directory_path()) /
             "jitney-test-cache-XXXXXX")
                .string();
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
}

TempDir::~TempDir() {
    if (std::uncaught_exceptions() > 0) {  // a REQUIRE failed
        MESSAGE("left for a look: " << path_);
        return;
    }
    std::error_code ignored;
    for (fs::recursive_directory_iterator at(path_, ignored), end; at != end;
         at.increment(ignored)) {
        if (at->is_directory(ignored) && !at->is_symlink(ignored))
            ::chmod(at->path().c_str(), 0700);
    }
    fs::remove_all(path_, ignored);
}

std::string TempDir::operator/(std::string_view name) const {
    return path_ + "/" + std::string(name);
}

Warn WarningLog::sink() {
    return [this](std::string_view text) {
        const std::lock_guard guard(mutex_);
        said_.emplace_back(text);
    };
}

std::vector<std::string> WarningLog::all() const {
    const std::lock_guard guard(mutex_);
    return said_;
}

bool WarningLog::mentions(std::string_view text) const {
    for (const std::string& said : all()) {
        if (said.find(text) != std::string::npos) return true;
    }
    return false;
}

Options options_for(const std::string& root) {
    static QuickFiles quick;
    Options options;
    options.private_root = root;
    options.file_system = &quick;
    return options;
}

Key sample_key(std::string_view variant) {
    return KeyBuilder("sample<head_dim=" + std::string(variant) + ">@sm_90a")
        .source("common/tile.h", "struct Tile;")
        .source("attention/sample.h", "void sample();")
        .option("--gpu-architecture=sm_90a")
        .finish();
}

std::string payload_for(std::string_view variant, std::size_t bytes) {
    std::string payload = "payload of " + std::string(variant) + ";";
    while (payload.size() < bytes)
        payload += static_cast<char>(payload.size() * 31 % 256);
    return payload;
}

Entry sample_entry(std::string_view variant, std::string_view compiler) {
    return {sample_key(variant).material, std::string(compiler), "_Z6sampleILi128EEvv",
            PayloadKind::cubin, payload_for(variant)};
}

Got get(Store& store, std::string_view variant) {
    const Outcome outcome =
        store.get_or_compute(sample_key(variant), kCompiler, [&] { return sample_entry(variant); });
    return {outcome.entry && outcome.entry->payload == payload_for(variant) &&
                outcome.entry->lowered_name == "_Z6sampleILi128EEvv",
            outcome.origin == Origin::computed};
}

std::string path_of(const std::string& root, const Key& key, std::string_view compiler) {
    const EntryName name{key.digest, std::string(compiler), PayloadKind::cubin};
    return root + "/" + name.shard() + "/" + name.file();
}

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
}

void write_file(const std::string& path, std::string_view bytes) {
    fs::create_directories(fs::path(path).parent_path());
    fs::permissions(fs::path(path).parent_path(), fs::perms::owner_all);
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    ::chmod(path.c_str(), 0600);
}

bool exists(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
}

void set_time(const std::string& path, long seconds_since_1970) {
    const timespec times[2] = {{seconds_since_1970, 0}, {seconds_since_1970, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

void set_age(const std::string& path, long seconds_ago) {
    set_time(path, static_cast<long>(std::time(nullptr)) - seconds_ago);
}

unsigned mode_of(const std::string& path) {
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status.st_mode & 07777U;
}

std::vector<std::string> names_under(const std::string& root, std::string_view prefix) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (fs::recursive_directory_iterator at(root, ignored), end; at != end;
         at.increment(ignored)) {
        const std::string name = at->path().filename().string();
        if (name == kUsageName) continue;  // of the directory itself, and always there
        if (!at->is_directory(ignored) && name.starts_with(prefix)) names.push_back(name);
    }
    return names;
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& item : fs::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

int start_child(const std::function<int()>& body, unsigned seconds) {
    const pid_t process = ::fork();
    REQUIRE(process >= 0);
    if (process != 0) return process;
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(seconds);
    int status = 255;
    try {
        status = body();
    } catch (...) {
        status = 255;
    }
    ::_exit(status);
}

int wait_child(int process) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0)
        REQUIRE(errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int in_child(const std::function<int()>& body, unsigned seconds) {
    return wait_child(start_child(body, seconds));
}

int as_plain_user(const std::string& root, const std::function<int()>& body) {
    constexpr uid_t kNobody = 65534;
    return in_child([&] {
        if (::geteuid() == 0) {
            if (::chown(root.c_str(), kNobody, kNobody) != 0) return 254;
            for (const auto& item : fs::recursive_directory_iterator(root)) {
                if (::lchown(item.path().c_str(), kNobody, kNobody) != 0) return 254;
            }
            if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 254;
        }
        return body();
    });
}

}  // namespace jitney::cache::testing
