#include "cache/store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cache/lock.hpp"
#include "cache/session.hpp"

namespace jitney::cache {

Candidates::Candidates(Session& session, Key key, std::string preferred, bool others)
    : session_(session), key_(std::move(key)), preferred_(std::move(preferred)), others_(others) {
    if (!preferred_.empty()) add_named(preferred_);
}

void Candidates::add_named(const std::string& compiler) {
    for (const PayloadKind kind : {PayloadKind::cubin, PayloadKind::ptx}) {
        for (std::size_t layer = 0; layer < session_.layers.size(); ++layer) {
            places_.push_back({layer, {key_.digest, compiler, kind}});
        }
    }
}

void Candidates::add_others() {
    std::vector<std::string> compilers;
    const std::string shard = EntryName{key_.digest, {}, PayloadKind::cubin}.shard();
    for (const auto& layer : session_.layers) {
        const Handle opened = layer->open_shard(shard);
        std::vector<std::string> names;
        if (!opened || session_.files.list(opened.get(), &names) != 0) continue;
        for (const std::string& name : names) {
            const auto parsed = EntryName::parse(name);
            if (parsed && parsed->digest == key_.digest && parsed->compiler != preferred_) {
                compilers.push_back(parsed->compiler);
            }
        }
    }
    std::sort(compilers.begin(), compilers.end(), is_newer_compiler);
    compilers.erase(std::unique(compilers.begin(), compilers.end()), compilers.end());
    for (const std::string& compiler : compilers)
        add_named(compiler);
}

std::optional<Hit> Candidates::next() {
    while (true) {
        if (at_ == places_.size()) {
            if (!others_) return std::nullopt;
            others_ = false;
            add_others();
            continue;
        }
        const Place& place = places_[at_++];
        Layer& layer = *session_.layers[place.layer];
        auto loaded = session_.load(layer, place.name, key_.material);
        if (!loaded) continue;
        return Hit{std::make_shared<const Entry>(std::move(loaded->entry)), loaded->checksum,
                   place.layer,
                   fmt::format("{}/{}/{}", layer.root(), place.name.shard(), place.name.file())};
    }
}

Store::Store(Options options) : options_(std::move(options)), session_(nullptr) {}

Store::~Store() {
    Session* const current = session_.load();
    // A parent's session belongs to the parent's threads, which do not exist here.
    if (current != nullptr && current->process == ::getpid()) delete current;
}

Session& Store::session() {
    Session* current = session_.load();
    const pid_t process = ::getpid();
    if (current != nullptr && current->process == process) return *current;
    FileSystem& files =
        options_.file_system != nullptr ? *options_.file_system : FileSystem::posix();
    auto fresh = std::make_unique<Session>(options_, files, process, current);
    // Of threads that come here together, one sets it.
    if (session_.compare_exchange_strong(current, fresh.get())) return *fresh.release();
    return *current;
}

Candidates Store::find(const Key& key, std::string_view compiler) {
    return {session(), key, is_compiler(compiler) ? std::string(compiler) : std::string()};
}

void Store::reject(const Hit& hit) {
    Session& current = session();
    const EntryName name = name_of(*hit.entry);
    current.add_rejected(name, hit.checksum);
    Layer* const layer = current.writable();
    if (layer == nullptr || hit.layer != 0) return;
    const ReadFile file = layer->read(name.shard(), name.file());
    const auto decoded = decode_as(file.bytes, name);
    if (!decoded || decoded.value->checksum != hit.checksum) return;
    if (const Handle shard = layer->open_shard(name.shard())) {
        layer->remove(shard, name.file(), file.identity);
    }
}

Outcome Store::get_or_compute(const Key& key, std::string_view compiler,
                              const std::function<Entry()>& compute) {
    Session& current = session();
    const std::string wanted = is_compiler(compiler) ? std::string(compiler) : std::string();
    Flights::Seat seat(current.flights, key.digest.hex() + '-' + wanted, options_.lock_timeout);
    if (const auto result = seat.result()) {
        Outcome outcome = *result;
        outcome.origin = Origin::other_thread;
        return outcome;
    }
    const auto land = [&](Outcome outcome) {
        seat.land(std::make_shared<const Outcome>(outcome));
        return outcome;
    };
    const auto look_up = [&]() -> std::optional<Outcome> {
        auto hit = Candidates(current, key, wanted, wanted.empty()).next();
        if (!hit) return std::nullopt;
        const bool own = current.layers[hit->layer]->role() == Role::writable;
        auto entry = hit->entry;
        return Outcome{std::move(entry), own ? Origin::private_layer : Origin::readonly_layer,
                       std::move(hit), false};
    };
    if (auto found = look_up()) return land(std::move(*found));
    KeyLock lock;
    Layer* const layer = current.writable();
    if (layer != nullptr && options_.max_bytes != 0 && options_.lock_timeout.count() != 0) {
        lock.acquire(*layer, key.digest, options_.lock_timeout);
        // Whoever held the lock before may have published it.
        if (auto found = look_up()) return land(std::move(*found));
    }
    Entry entry = compute();
    entry.material = key.material;
    auto shared = std::make_shared<const Entry>(std::move(entry));
    const bool kept = current.keep(*shared);
    return land({std::move(shared), Origin::computed, std::nullopt, kept});
}

bool Store::put(const Key& key, Entry entry) {
    entry.material = key.material;
    return session().keep(entry);
}

}  // namespace jitney::cache
