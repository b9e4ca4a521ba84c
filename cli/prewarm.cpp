// jitney prewarm: compiles specializations into the cache.
#include "jitney/prewarm.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments.hpp"
#include "cli/command.hpp"
#include "cli/errors.hpp"
#include "cli/linear_options.hpp"
#include "cli/logits_option.hpp"
#include "cli/manifest.hpp"
#include "cli/model_options.hpp"
#include "cli/output.hpp"
#include "cli/prewarm_targets.hpp"
#include "cli/progress.hpp"
#include "jitney/kernel.hpp"

namespace jitney::cli {

namespace {

struct Options {
    std::vector<std::string> specs;
    std::vector<std::string> manifests;
    std::vector<std::string> logits;
    ModelOptions model;
    LinearOptions linear;
    PrewarmTargets targets;
    bool list = false;
    int jobs = 0;
};

// Adds what the list has not yet.
template <class Item, class Same>
void add_once(std::vector<Item>& all, Item item, const Same& same) {
    const auto is_same = [&](const Item& each) { return same(each, item); };
    if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(std::move(item));
}

// Each once, in the order in which they are first named.
Manifest targets_of(const Options& options, const std::optional<ServedModel>& model) {
    std::vector<std::string> all;
    Manifest unique;
    if (model) all = model->specs;
    for (std::string& text : options.linear.specializations(options.targets))
        all.push_back(std::move(text));
    for (const std::string& text : options.specs) {
        check_spec(text);
        all.push_back(text);
    }
    for (const std::string& path : options.manifests) {
        Manifest read = read_manifest(path);
        all.insert(all.end(), read.specs.begin(), read.specs.end());
        for (KernelTarget& target : read.kernels) {
            add_once(unique.kernels, std::move(target), [](const auto& a, const auto& b) {
                return a.kernel == b.kernel && a.arch == b.arch;
            });
        }
    }
    for (std::string& text : all)
        add_once(unique.specs, std::move(text), std::equal_to<>());
    return unique;
}

// The files in which the logits functions of the specializations are looked for, by their digests.
class LogitsFiles {
  public:
    explicit LogitsFiles(const std::vector<std::string>& paths) {
        for (const std::string& path : paths)
            files_.emplace_back(path, read_logits(path));
    }

    // Throws Error where one of them is in no file.
    void require(const std::vector<std::string>& specs) const {
        for (const std::string& text : specs) {
            constexpr std::string_view constant = "logits=";
            const std::size_t at = text.find(constant);
            if (at == text.npos || has(text.substr(at + constant.size(), 16))) continue;
            refuse(fmt::format(
                "{} has a logits function whose text is not known here: {}", text,
                files_.empty() ? "give its file with --logits" : "give its file, as " + told()));
        }
    }

    // The one that is meant where a model needs one; null: none was given.
    const LogitsFunction* first() const { return files_.empty() ? nullptr : &files_[0].second; }

  private:
    // In 16 hexadecimal digits, as a specialization has it.
    bool has(std::string_view digest) const {
        return std::any_of(files_.begin(), files_.end(), [digest](const auto& file) {
            return fmt::format("{:016x}", file.second.digest()) == digest;
        });
    }
    std::string told() const {
        std::string all;
        for (const auto& [path, function] : files_) {
            all += fmt::format("{}--logits {} has the digest {:016x}", all.empty() ? "" : " and ",
                               path, function.digest());
        }
        return all;
    }

    std::vector<std::pair<std::string, LogitsFunction>> files_;
};

const char* name_of(PrewarmStatus status) {
    switch (status) {
        case PrewarmStatus::compiled:
            return "compiled";
        case PrewarmStatus::cached:
            return "cached";
        case PrewarmStatus::failed:
            break;
    }
    return "failed";
}

struct Summary {
    std::vector<PrewarmEntry> entries;
    double seconds = 0;

    std::size_t count(PrewarmStatus status) const {
        return static_cast<std::size_t>(
            std::count_if(entries.begin(), entries.end(),
                          [status](const PrewarmEntry& entry) { return entry.status == status; }));
    }
};

void print_summary(const Summary& summary, const std::optional<ServedModel>& model, bool json) {
    const std::size_t compiled = summary.count(PrewarmStatus::compiled);
    const std::size_t cached = summary.count(PrewarmStatus::cached);
    const std::size_t failed = summary.count(PrewarmStatus::failed);
    if (json) {
        Json entries = Json::array();
        for (const PrewarmEntry& entry : summary.entries) {
            entries.push_back({{"spec", entry.spec},
                               {"status", name_of(entry.status)},
                               {"ms", entry.milliseconds},
                               {"bytes", entry.bytes},
                               {"error", entry.error}});
        }
        Json answer = {{"compiled", compiled},
                       {"cached", cached},
                       {"failed", failed},
                       {"seconds", summary.seconds},
                       {"entries", std::move(entries)}};
        if (model) answer["model"] = model->json();
        print_json(answer);
        return;
    }
    if (model) print(model->text() + "\n");
    Table table({"specialization", "status", "ms>", "bytes>"});
    for (const PrewarmEntry& entry : summary.entries) {
        table.add({entry.spec, name_of(entry.status), fmt::format("{:.0f}", entry.milliseconds),
                   std::to_string(entry.bytes)});
    }
    if (!summary.entries.empty()) print(table.text());
    const std::size_t count = summary.entries.size();
    print(fmt::format("{} specialization{}: compiled {}, cached {}, failed {} in {:.2f} s\n", count,
                      plural(count), compiled, cached, failed, summary.seconds));
}

// As a manifest has them; what was read of the model goes beside it, to standard error.
void print_list(const Manifest& targets, const std::optional<ServedModel>& model, bool json) {
    std::vector<std::string> specs = targets.specs;
    for (const KernelTarget& target : targets.kernels) {
        specs.push_back(json ? target.kernel.spec(target.arch)
                             : target.kernel.manifest(target.arch));
    }
    if (json) {
        Json answer = {{"specs", specs}};
        if (model) answer["model"] = model->json();
        print_json(answer);
        return;
    }
    for (const std::string& spec : specs)
        print(spec + "\n");
    flush_output();
    if (model) std::fputs(model->text().c_str(), stderr);
}

// The status of what was asked for: a part of the model that is not served fails it.
int status_of(const std::optional<ServedModel>& model) {
    if (!model || model->unserved.empty()) return kSuccess;
    return model->specs.empty() ? kBadInput : kFailure;
}

int prewarm_all(const Options& options, bool json) {
    // Made, so that specializations that name them can be compiled.
    const LogitsFiles logits(options.logits);
    const std::optional<ServedModel> model = options.model.read(options.targets, logits.first());
    const Manifest targets = targets_of(options, model);
    const std::vector<std::string>& specs = targets.specs;
    if (!options.targets.archs.empty() && options.model.file.empty() &&
        options.linear.weights.empty()) {
        refuse("--arch is of a --model or a --linear: a specialization carries its own");
    }
    if (specs.empty() && options.manifests.empty() && !model) {
        refuse(
            "prewarm needs --model, --linear, --spec or --manifest; jitney explain gives the "
            "specialization of a problem");
    }
    if (model) {
        for (const std::string& sentence : model->unserved)
            print_error(sentence);
    }
    if (options.list) {
        print_list(targets, model, json);
        return status_of(model);
    }
    logits.require(specs);
    Summary summary;
    const auto start = std::chrono::steady_clock::now();
    {
        ProgressBar bar;
        PrewarmOptions settings;
        settings.jobs = options.jobs;
        settings.progress = [&bar](const PrewarmEntry& entry, std::size_t done, std::size_t total) {
            bar.show(done, total, entry.spec);
        };
        bar.show(0, specs.size() + targets.kernels.size(), "");
        summary.entries = prewarm(specs, targets.kernels, settings);
    }
    summary.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    print_summary(summary, model, json);
    for (const PrewarmEntry& entry : summary.entries) {
        if (entry.status == PrewarmStatus::failed) print_error(entry.error);
    }
    return summary.count(PrewarmStatus::failed) == 0 ? status_of(model) : kFailure;
}

}  // namespace

void add_prewarm(CLI::App& root, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(root, request, "prewarm",
                    "Compile specializations into the cache, for any architecture, without a GPU",
                    [options](bool json) { return prewarm_all(*options, json); });
    options->model.add_to(command);
    options->linear.add_to(command);
    options->targets.add_to(command);
    add_texts(command, "--spec", options->specs, "TEXT",
              "A specialization; may be given several times");
    add_texts(command, "--manifest", options->manifests, "FILE",
              "A file of specializations, one a line, and of kernels of your own");
    add_texts(command, "--logits", options->logits, "FILE",
              "A file with a logits function that a specialization names by its digest");
    command.add_flag("--list", options->list,
                     "Print the specializations, one a line as in a manifest, and compile none");
    add_integer(command, "--jobs", options->jobs, 1, 1024, "Compiles at a time (one a core)");
}

}  // namespace jitney::cli
