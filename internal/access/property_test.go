package access_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/access"
)

// testBinding is a binding as JSON, which is YAML.
type testBinding struct {
	Roles      []string `json:"roles"`
	Principals []string `json:"principals,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Tenants    []string `json:"tenants,omitempty"`
	Graphs     []string `json:"graphs,omitempty"`
	Condition  string   `json:"condition,omitempty"`
	Rights     []string `json:"rights,omitempty"`
}

func parseBindings(t testing.TB, bindings []testBinding) *access.Policy {
	t.Helper()
	text, err := json.Marshal(map[string]any{"bindings": bindings})
	require.NoError(t, err)
	return parse(t, string(text))
}

// draw returns at most n of the words.
func draw(r *rand.Rand, n int, words ...string) []string {
	var all []string
	for range r.IntN(n + 1) {
		all = append(all, words[r.IntN(len(words))])
	}
	return all
}

func drawBinding(r *rand.Rand) testBinding {
	b := testBinding{
		Roles:      append(draw(r, 1, "viewer", "answerer", "linker", "starter", "worker", "author", "operator", "admin"), "author"),
		Principals: draw(r, 2, "ana", "ben"),
		Groups:     draw(r, 2, "red", "blue"),
		Tenants:    draw(r, 2, "acme", "globex"),
		Graphs:     draw(r, 2, "payout", "pay*", "*", "[a-f]*"),
		Rights:     draw(r, 1, "approve-changes"),
	}
	if len(b.Principals)+len(b.Groups) == 0 {
		b.Groups = []string{"red"}
	}
	if r.IntN(3) == 0 {
		conditions := []string{`true`, `false`, `thread == "t1"`, `principal.groups[1] == "red"`, `tenant != principal.tenant`}
		b.Condition = conditions[r.IntN(len(conditions))]
	}
	return b
}

func drawRequest(r *rand.Rand) access.Request {
	methods, rights := access.Methods(), access.Rights()
	request := access.Request{
		Caller: access.Caller{
			Name: []string{"ana", "ben", "eva", ""}[r.IntN(4)], Groups: draw(r, 2, "red", "blue", "green"),
			Tenant: []string{"acme", "globex", ""}[r.IntN(3)], Tenants: draw(r, 2, "acme", "globex"),
		},
		Method: methods[r.IntN(len(methods))].Method,
		Tenant: []string{"", "acme", "globex", "initech"}[r.IntN(4)],
		Graph:  []string{"", "payout", "payroll", "expense"}[r.IntN(4)],
		Thread: []string{"", "t1", "t2"}[r.IntN(3)],
	}
	for range r.IntN(3) {
		request.Rights = append(request.Rights, rights[r.IntN(len(rights))].Right)
	}
	return request
}

// A further binding never removes what the others give, and a decision depends on
// the request alone.
func TestBindingsOnlyAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	gained := 0
	for range 100 {
		bindings := []testBinding{}
		for range r.IntN(5) {
			bindings = append(bindings, drawBinding(r))
		}
		fewer := parseBindings(t, bindings)
		at := r.IntN(len(bindings) + 1)
		more := parseBindings(t, slices.Insert(slices.Clone(bindings), at, drawBinding(r)))
		require.Equal(t, len(bindings)+1, more.BindingCount())
		for range 200 {
			request := drawRequest(r)
			before, after := fewer.Decide(request), more.Decide(request)
			require.Equal(t, before, fewer.Decide(request))
			require.False(t, before.Allowed && !after.Allowed, "%+v %+v", request, bindings)
			require.False(t, before.CanSee && !after.CanSee, "%+v %+v", request, bindings)
			require.False(t, after.Allowed && !after.CanSee)
			require.NotEmpty(t, after.Rule)
			if after.Allowed && !before.Allowed {
				gained++
			}
		}
	}
	require.Greater(t, gained, 100, "the drawn bindings give something")
}

// Without bindings a caller has what every caller has, in its own tenants, and sees
// neither threads nor graphs.
func TestNoBindingGivesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 2))
	for _, p := range []*access.Policy{access.NewPolicy(), parse(t, "bindings: []")} {
		require.Zero(t, p.BindingCount())
		for range 5_000 {
			request := drawRequest(r)
			d := p.Decide(request)
			if d.Rule == "any caller" {
				require.True(t, d.Allowed)
				require.NotEmpty(t, request.Caller.Name)
				require.Empty(t, request.Rights)
				continue
			}
			require.False(t, d.Allowed, "%+v", request)
			require.False(t, d.CanSee && (request.Thread != "" || request.Graph != ""), "%+v", request)
		}
	}
}

// Two callers who differ in nothing that a policy names have the same rights, and a
// tenant that is not the caller's is like one that does not exist.
func TestForeignTenantsLookLikeNone(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 3))
	for range 30 {
		p := parseBindings(t, []testBinding{drawBinding(r), drawBinding(r)})
		for range 200 {
			request := drawRequest(r)
			request.Caller.Tenant, request.Caller.Tenants = "initech", nil
			request.Tenant = "globex"
			exists := p.Decide(request)
			request.Tenant = "no-such-tenant"
			require.Equal(t, p.Decide(request), exists)
			require.False(t, exists.Allowed)
			require.False(t, exists.CanSee)
		}
	}
}
