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
func (r *Subscriber) Register(server string, changed func()) checkpoint.Registration {
	p := &registration{
		subscriber: r, server: server, onChange: changed, syncNeeded: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	p.closeOnce = sync.OnceFunc(func() { close(p.closed) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return p
	}
	r.registrations.mu.Lock()
	defer r.registrations.mu.Unlock()
	if r.registrations.all == nil {
		r.registrations.all = make(map[*registration]struct{}, 1)
	}
	r.registrations.all[p] = struct{}{}
	r.connectionFor(noPartition).setWanted(r.config.Keys.AnnouncementChannel(), true)
	r.goroutines.Go(r.containPanics(r.ctx, p.keepSyncing))
	return p
}

// requestSyncs makes all registrations read the membership: another server has
// changed, or messages may have been missed.
func (r *registrations) requestSyncs() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.all {
		p.requestSync()
	}
}

func (p *registration) requestSync() {
	select {
	case p.syncNeeded <- struct{}{}:
	default:
	}
}

// SetCapabilities publishes the capabilities of the workers of this server.
func (p *registration) SetCapabilities(served []checkpoint.Capability) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.capabilities, served) {
		p.capabilities = slices.Clone(served)
		p.requestSync()
	}
}

// SetClaims publishes the leases of earlier servers that this server knows.
func (p *registration) SetClaims(claims checkpoint.Claims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !equalClaims(p.claims, claims) {
		p.claims = claims
		p.requestSync()
	}
}

func equalClaims(a, b checkpoint.Claims) bool {
	return slices.Equal(a.Held, b.Held) && slices.Equal(a.Awaited, b.Awaited)
}

// OtherMembers lists the other servers.
func (p *registration) OtherMembers() []checkpoint.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members
}

// Close removes the server from the membership.
func (p *registration) Close() { p.closeOnce() }

// minSyncInterval is the least time between two exchanges, however often
// workers attach and detach.
const minSyncInterval = 50 * time.Millisecond

// keepSyncing keeps the server registered until the registration or the store
// is closed.
func (p *registration) keepSyncing(ctx context.Context) {
	defer p.removeMember(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.syncNeeded:
		case <-timer.C:
		case <-p.closed:
			return
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		entry := encodeMember(p.capabilities, p.claims)
		p.mu.Unlock()
		next := p.subscriber.config.Heartbeat
		if p.syncMembership(ctx, entry) != nil {
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
func (p *registration) removeMember(ctx context.Context) {
	p.subscriber.registrations.mu.Lock()
	delete(p.subscriber.registrations.all, p)
	p.subscriber.registrations.mu.Unlock()
	_ = p.syncMembership(context.WithoutCancel(ctx), "") // otherwise its entry expires
}

// syncMembership makes an exchange, and notifies the other servers when the entry
// has changed. The caller repeats an exchange that was not answered in time.
func (p *registration) syncMembership(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	c := &p.subscriber.config
	holds := 3*c.Heartbeat + exchangeTimeout
	answer, err := c.Membership.Run(
		ctx, c.Client, []string{c.Keys.MembershipKey(), c.Keys.MetadataKey()}, p.server, holds.Microseconds(), what, c.Epoch,
	).Slice()
	if err != nil {
		return err //nolint:wrapcheck // only whether there is one matters
	}
	r := script.Reply(answer)
	p.updateMembers(r[1:])
	if isNew, _ := r.IntAt(0); isNew == 0 {
		return nil
	}
	text := c.Origin + string(messageMembership) + layout.AddLength("")
	if err := c.Client.SPublish(ctx, c.Keys.AnnouncementChannel(), text).Err(); err != nil {
		return nil // they read it with their next heartbeat
	}
	return nil
}

// updateMembers records the entries of the other servers.
func (p *registration) updateMembers(list script.Reply) {
	others := make([]checkpoint.Member, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		member := checkpoint.Member{Server: list.TextAt(i)}
		member.Capabilities, member.Claims = decodeMember(list.TextAt(i + 1))
		others = append(others, member)
	}
	slices.SortFunc(others, func(a, b checkpoint.Member) int { return strings.Compare(a.Server, b.Server) })
	p.mu.Lock()
	same := slices.EqualFunc(p.members, others, func(a, b checkpoint.Member) bool {
		return a.Server == b.Server && slices.Equal(a.Capabilities, b.Capabilities) && equalClaims(a.Claims, b.Claims)
	})
	p.members = others
	p.mu.Unlock()
	if !same {
		p.onChange()
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
