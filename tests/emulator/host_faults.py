"""Deliberate faults in host code, one at a time: most take back what once mended a fault that users
met. mutate.py --host checks that the named tests notice each."""
from dataclasses import dataclass

from mutations import Fault


@dataclass(frozen=True)
class HostFault(Fault):
    program: str = ""  # that is to notice it
    cases: tuple = ()  # those of its test cases that begin so; none: all


def cache(file, what, text, fault, *cases):
    return HostFault(file, what, text, fault, "test_cache", cases)


def runtime(file, what, text, fault, *cases):
    return HostFault(file, what, text, fault, "test_runtime", cases)


def api(file, what, text, fault, *cases):
    return HostFault(file, what, text, fault, "test_api", cases)


def reference(file, what, text, fault, *cases):
    return HostFault(file, what, text, fault, "test_reference", cases)


FAULTS = [
    # Whose files are trusted
    cache("cache/trust.cpp", "the directories above the cache are not looked at",
          "        if (!walk_.vouched) {\n            const std::string why = distrust_above",
          "        if (walk_.vouched) {\n            const std::string why = distrust_above",
          "a directory above the cache"),
    cache("cache/trust.cpp", "a sticky directory is one that others can write",
          "(seen.st_mode & S_ISVTX) != 0) seen", "(seen.st_mode & S_ISVTX) == 0) seen",
          "a sticky directory"),
    cache("cache/trust.cpp", "links of others are followed",
          "if (!walk_.vouched && !is_trusted_owner", "if (walk_.vouched && !is_trusted_owner",
          "a link on the way"),
    cache("cache/trust.cpp", "the superuser's cache may lie in a user's home",
          "return distrust(files_, seen, Owner::user_or_superuser, file);",
          "return others_can_write(files_, seen, file) ? std::string(\"can be written\") : std::string();",
          "the superuser makes nothing"),
    cache("cache/trust.cpp", "code may lie where others can put files",
          "if (reached.shared_directory) {", "if (false && reached.shared_directory) {",
          "code is trusted"),
    cache("cache/trust.cpp", "an owner's mode bits for the group do not count",
          "if ((status.st_mode & 020U) == 0) return false;",
          "if ((status.st_mode & 02U) == 0) return false;"),
    cache("cache/trust.cpp", "a list of access beside the mode is not looked at",
          " || files.has_access_list(file)", "", "a group whose one member"),
    cache("cache/options.cpp", "a pattern of trusted directories trusts what it names",
          "if (root.find('*') != std::string::npos) {", "if (root.empty()) {", "trust is given"),
    cache("cache/options.cpp", "a path with a tilde is a path",
          "if (path.starts_with('~') || path.find(\"/~\") != std::string_view::npos) {",
          "if (path.empty()) {", "a value that names no directory"),
    cache("cache/options.cpp", "a relative path is a path",
          "if (!path.starts_with('/')) return \"is not an absolute path\";", "",
          "a value that names no directory"),
    # Upkeep, sizes, writers
    cache("cache/scan.cpp", "a shard that can't be listed has nothing in it",
          "found->gaps.directories.push_back({path, \"can't be listed: \" + error_text(errno)});",
          "errno = 0;", "a list that leaves something out"),
    cache("cache/scan.cpp", "a root that can't be opened is none",
          "if (why.empty()) why = layer.trouble();", "", "a list that leaves something out"),
    cache("cache/layer.cpp", "a file in a shard's place is not named",
          "if (error == ENOTDIR || error == ELOOP)\n        return", "if (error == ELOOP)\n        return",
          "links, pipes and directories"),
    cache("cache/publish.cpp", "an empty directory in an entry's place stays",
          "files.rmdir(shard.get(), file.c_str()) == 0) {", "status.st_size < 0) {",
          "a directory in an entry's place"),
    cache("cache/usage.cpp", "what was reserved is not added to the sum of all writers",
          "account.write({sum->bytes + bytes, sum->reservations + 1});",
          "account.write({sum->bytes, sum->reservations + 1});", "writers that do not know"),
    cache("cache/usage.cpp", "the sum is never counted anew",
          "if (!sum || sum->bytes > room || sum->reservations >= kReservationsBetweenCounts) {",
          "if (!sum || sum->bytes > room) {", "entries that no account"),
    cache("cache/sweep.cpp", "an entry that is dated ahead is the youngest",
          "id.modified > now + kUseResolution;", "id.modified < 0;", "entries dated beyond now"),
    cache("cache/temporary.cpp", "what nobody holds is held",
          "if (tried == LockTry::busy) return Writer::writing;",
          "if (tried != LockTry::gone) return Writer::writing;", "leftovers that nobody holds"),
    cache("cache/held_file.cpp", "a child keeps its parent's locks",
          "::close(std::exchange(*file, -1));", "*file = -1;", "a forked child"),
    cache("cache/file_system.cpp", "a write past the limit for files ends the process",
          "held_back_ = ::pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;",
          "held_back_ = false;", "a limit for files"),
    cache("cache/bundle.cpp", "an import counts what the cap has not kept",
          "++(!there ? report->left_out", "++(!there && item.was_present ? report->left_out",
          "an import keeps"),
    cache("cache/key.cpp", "a specialization may hold line breaks and escapes",
          "if (printable(specialization) != specialization)", "if (specialization.empty())",
          "an entry whose key"),
    cache("cache/entry.cpp", "an entry's key is not looked at when it is read",
          "    if (std::string flaw = material_flaw(head.material); !flaw.empty())\n"
          "        return flawed<EntryHead>(std::move(flaw));\n", "", "an entry whose key"),
    # The caller's thread, compiles
    runtime("runtime/caller_thread.cpp", "the caller's locale is not given back",
            "if (uselocale(nullptr) != locale_) uselocale(locale_);", "", "a call that"),
    runtime("runtime/caller_thread.cpp", "the floating-point mode is not given back",
            "    std::fesetenv(&floating_);\n    errno = errno_;\n}\n\nvoid KeptThread", "    errno = errno_;\n}\n\nvoid KeptThread",
            "a call that"),
    runtime("runtime/caller_thread.cpp", "errno is not given back",
            "    std::fesetenv(&floating_);\n    errno = errno_;", "    std::fesetenv(&floating_);",
            "a call that"),
    runtime("runtime/caller_thread.cpp", "the context is not given back",
            "        open_driver()->cuCtxSetCurrent(context_);", "        now = nullptr;",
            "a call that", "a context is lent"),
    runtime("runtime/compiler.cpp", "every key has one seed",
            "key_of(source).digest.hex());", "key_of(source).digest.hex().substr(32));", "the seed is"),
    runtime("runtime/forks.cpp", "a child of a compiling process compiles",
            "if (compiles.exchange(0) > 0) orphaned = true;", "compiles = 0;", "a child that was forked"),
    # Arguments
    api("operations/device_text.cpp", "a text may ask for files",
        "\"__has_include\", \"__has_include_next\",", "\"__has_include_next\",", "names that make"),
    api("operations/device_text.hpp", "names may be pasted together",
        "{\"##\", \"%:%:\"}", "{\"%:%:\"}", "names that make"),
    api("operations/attention/check.cpp", "a mask of one column stands for all keys of a GPU call",
        "form != KvForm::dense && keys == 1 && args", "form != KvForm::dense && keys == 0 && args",
        "a mask of one column"),
    reference("operations/attention/reference_rules.cpp", "a mask of one column stands for all keys",
              "const bool repeats = dim != 3 && mask.shape[i] == 1;",
              "const bool repeats = mask.shape[i] == 1;", "a mask of one column"),
    api("core/steps.hpp", "a stride counts without a neighbour",
        "return tensor.shape[dim] > 1 && !is_empty(tensor) ? tensor.strides[dim] : 0;",
        "return !is_empty(tensor) ? tensor.strides[dim] : 0;",
        "appending does not", "attention does not", "checks and searches"),
    # Calls of one form, and plans
    api("operations/call_form.hpp", "calls that lie elsewhere in 16 bytes are of one form",
        "        alignment);", "        std::uintptr_t{0});", "a call is served as if no other"),
    api("operations/plan.hpp", "a run is not compared with the call of its plan",
        "if (!is_like<Differs::in_runs>(args, plan.args) || !plan.memory", "if (!plan.memory",
        "a run of a plan refuses"),
    api("operations/check_plan.hpp", "a plan runs calls that are less aligned",
        "    if (on_gpu && !as_aligned(problem, planned_problem)) refuse_unaligned();\n", "",
        "a run of a plan refuses"),
    api("operations/plan.hpp", "tensors of a plan that are not known yet lie in one place",
        "reinterpret_cast<void*>(place << 58)", "reinterpret_cast<void*>(std::uintptr_t{1} << 58)",
        "a run of a plan refuses"),
    api("operations/fp8_gemm/choose.hpp", "a product writes 16 bytes at a time wherever they lie",
        " && problem.out_aligned >= other.out_aligned;", ";", "a run of a plan refuses"),
    HostFault("core/printable.cpp", "marks that reorder text are shown as they are",
              "(c >= 0x2028 && c <= 0x202E)", "(c >= 0x2028 && c <= 0x2029)", "test_core",
              ("what a terminal",)),
]
