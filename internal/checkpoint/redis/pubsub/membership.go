package pubsub

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// registrations are the registered servers of this process.
type registrations struct {
	mu  sync.Mutex
	all map[*registration]struct{}
}

// registration implements checkpoint.Registration: it writes the capabilities
// of its server with every heartbeat and as soon as they change.
type registration struct {
	subscriber *Subscriber
	server     string
	onChange   func()
	syncNeeded chan struct{}
	closed     chan struct{}
	closeOnce  func()

	mu           sync.Mutex
	capabilities []checkpoint.Capability
	claims       checkpoint.Claims
	members      []checkpoint.Member
}

// Register adds a server to the membership.
func (s *Subscriber) Register(server string, changed func()) checkpoint.Registration {
	r := &registration{
		subscriber: s, server: server, onChange: changed, syncNeeded: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	r.closeOnce = sync.OnceFunc(func() { close(r.closed) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return r
	}
	s.registrations.mu.Lock()
	defer s.registrations.mu.Unlock()
	if s.registrations.all == nil {
		s.registrations.all = make(map[*registration]struct{}, 1)
	}
	s.registrations.all[r] = struct{}{}
	s.connectionFor(noPartition).setWanted(s.config.Keys.AnnouncementChannel(), true)
	s.goroutines.Go(s.containPanics(s.ctx, r.keepSyncing))
	return r
}

// requestSyncs makes all registrations read the membership: another server has
// changed, or messages may have been missed.
func (r *registrations) requestSyncs() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.all {
		one.requestSync()
	}
}

func (r *registration) requestSync() {
	select {
	case r.syncNeeded <- struct{}{}:
	default:
	}
}

// SetCapabilities publishes the capabilities of the workers of this server.
func (r *registration) SetCapabilities(served []checkpoint.Capability) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.capabilities, served) {
		r.capabilities = slices.Clone(served)
		r.requestSync()
	}
}

// SetClaims publishes the leases of earlier servers that this server knows.
func (r *registration) SetClaims(claims checkpoint.Claims) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !equalClaims(r.claims, claims) {
		r.claims = claims
		r.requestSync()
	}
}

func equalClaims(a, b checkpoint.Claims) bool {
	return slices.Equal(a.Held, b.Held) && slices.Equal(a.Awaited, b.Awaited)
}

// OtherMembers lists the other servers.
func (r *registration) OtherMembers() []checkpoint.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members
}

// Close removes the server from the membership.
func (r *registration) Close() { r.closeOnce() }

// minSyncInterval is the least time between two exchanges, however often
// workers attach and detach.
const minSyncInterval = 50 * time.Millisecond

// keepSyncing keeps the server registered until the registration or the store
// is closed.
func (r *registration) keepSyncing(ctx context.Context) {
	defer r.removeMember(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.syncNeeded:
		case <-timer.C:
		case <-r.closed:
			return
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		entry := encodeMember(r.capabilities, r.claims)
		r.mu.Unlock()
		next := r.subscriber.config.Heartbeat
		if r.syncMembership(ctx, entry) != nil {
			next /= 3
		}
		timer.Reset(next)
		if !script.SleepContext(ctx, minSyncInterval) {
			return
		}
	}
}

// removeMember removes the server from the membership, if the store answers in
// time.
func (r *registration) removeMember(ctx context.Context) {
	r.subscriber.registrations.mu.Lock()
	delete(r.subscriber.registrations.all, r)
	r.subscriber.registrations.mu.Unlock()
	_ = r.syncMembership(context.WithoutCancel(ctx), "") // otherwise its entry expires
}

// syncMembership makes an exchange, and notifies the other servers when the entry
// has changed. The caller repeats an exchange that was not answered in time.
func (r *registration) syncMembership(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	c := &r.subscriber.config
	holds := 3*c.Heartbeat + exchangeTimeout
	answer, err := c.Membership.Run(
		ctx, c.Client, []string{c.Keys.MembershipKey(), c.Keys.MetadataKey()}, r.server, holds.Microseconds(), what, c.Epoch,
	).Slice()
	if err != nil {
		return err //nolint:wrapcheck // only whether there is one matters
	}
	reply := script.Reply(answer)
	r.updateMembers(reply[1:])
	if isNew, _ := reply.IntAt(0); isNew == 0 {
		return nil
	}
	text := c.Origin + string(messageMembership) + layout.AddLength("")
	if err := c.Client.SPublish(ctx, c.Keys.AnnouncementChannel(), text).Err(); err != nil {
		return nil // they read it with their next heartbeat
	}
	return nil
}

// updateMembers records the entries of the other servers.
func (r *registration) updateMembers(list script.Reply) {
	others := make([]checkpoint.Member, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		member := checkpoint.Member{Server: list.TextAt(i)}
		member.Capabilities, member.Claims = decodeMember(list.TextAt(i + 1))
		others = append(others, member)
	}
	slices.SortFunc(others, func(a, b checkpoint.Member) int { return strings.Compare(a.Server, b.Server) })
	r.mu.Lock()
	same := slices.EqualFunc(r.members, others, func(a, b checkpoint.Member) bool {
		return a.Server == b.Server && slices.Equal(a.Capabilities, b.Capabilities) && equalClaims(a.Claims, b.Claims)
	})
	r.members = others
	r.mu.Unlock()
	if !same {
		r.onChange()
	}
}

// storedCapability is the stored form of a capability. The last capability of a
// list may hold claims instead.
type storedCapability struct {
	Graph   string   `json:"graph"`
	Version string   `json:"version,omitempty"`
	Node    string   `json:"node,omitempty"`
	Holds   []string `json:"holds,omitempty"`
	Awaits  []string `json:"awaits,omitempty"`
}

// encodeMember encodes the entry of a server, "" = none.
func encodeMember(list []checkpoint.Capability, claims checkpoint.Claims) string {
	out := make([]storedCapability, 0, len(list)+1)
	for _, s := range list {
		out = append(out, storedCapability{Graph: s.Graph, Version: s.Version, Node: s.Node})
	}
	if len(claims.Held)+len(claims.Awaited) > 0 {
		out = append(out, storedCapability{Holds: claims.Held, Awaits: claims.Awaited})
	}
	if len(out) == 0 {
		return ""
	}
	// No field of it can fail to be written.
	b, _ := json.Marshal(out)
	return string(b)
}

// decodeMember decodes it. An entry that can't be read, as of a newer graphd,
// counts as empty.
func decodeMember(text string) (list []checkpoint.Capability, claims checkpoint.Claims) {
	var in []storedCapability
	if json.Unmarshal([]byte(text), &in) != nil {
		return nil, claims
	}
	list = make([]checkpoint.Capability, 0, len(in))
	for _, s := range in {
		if s.Graph == "" {
			claims = checkpoint.Claims{Held: s.Holds, Awaited: s.Awaits}
			continue
		}
		list = append(list, checkpoint.Capability{Graph: s.Graph, Version: s.Version, Node: s.Node})
	}
	return list, claims
}
