package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/access"
)

const (
	methodPrefix = "/graphd.v1."
	resume       = methodPrefix + "GraphService/Resume"
	startRun     = methodPrefix + "GraphService/StartRun"
	getThread    = methodPrefix + "ThreadService/GetThread"
	deleteThread = methodPrefix + "ThreadService/DeleteThread"
	listThreads  = methodPrefix + "ThreadService/ListThreads"
	updateAsked  = methodPrefix + "InterruptService/UpdateInterrupt"
	putGraph     = methodPrefix + "RegistryService/PutGraph"
	connect      = methodPrefix + "WorkerService/Connect"
)

const companyPolicy = `
bindings:
  - roles: [viewer]
    groups: [staff]
  - roles: [answerer]
    groups: [finance]
    graphs: ["payout*", refund]
  - roles: [author]
    principals: [ana, ben]
  - roles: [author]
    principals: [ben]
    graphs: [payout]
    rights: [approve-changes]
  - roles: [operator]
    groups: [oncall]
    tenants: ["*"]
    condition: now.getHours() < 18 && principal.how == "certificate"
  - roles: [worker]
    principals: [bot]
    graphs: ["[a-m]*"]
  - roles: [viewer]
    principals: [guest]
    tenants: [globex]
    condition: thread.startsWith("public-")
  - roles: [viewer]
    principals: [clumsy]
    condition: principal.groups[3] == "x"
`

func TestDecisions(t *testing.T) {
	p := parse(t, companyPolicy)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	caller := func(name string, groups ...string) access.Caller {
		return access.Caller{Name: name, Groups: groups, Tenant: "acme", How: "token"}
	}
	oncall := access.Caller{Name: "olga", Groups: []string{"oncall"}, Tenant: "acme", Tenants: []string{"acme", "globex"}, How: "certificate"}
	guest := access.Caller{Name: "guest", Tenant: "acme", Tenants: []string{"globex"}}
	allowed := func(rule string) access.Decision {
		return access.Decision{Allowed: true, Rule: rule, CanSee: true}
	}
	refused := func(rule string) access.Decision { return access.Decision{Rule: rule, CanSee: true} }
	hidden := func(rule string) access.Decision { return access.Decision{Rule: rule} }
	for name, c := range map[string]struct {
		request access.Request
		want    access.Decision
	}{
		"reads": {
			access.Request{Caller: caller("eva", "staff"), Method: getThread, Graph: "payout", Thread: "t"}, allowed("binding: line 3"),
		},
		"sees and may not answer": {
			access.Request{Caller: caller("eva", "staff"), Method: resume, Graph: "payout", Thread: "t"}, refused("role: answerer, admin"),
		},
		"sees nothing": {
			access.Request{Caller: caller("eva"), Method: resume, Graph: "payout", Thread: "t"}, hidden("role: answerer, admin"),
		},
		"answers a graph of the pattern": {
			access.Request{Caller: caller("fay", "finance"), Method: resume, Graph: "payout-eu", Thread: "t"}, allowed("binding: line 5"),
		},
		"answers a graph of the name": {
			access.Request{Caller: caller("fay", "finance"), Method: resume, Graph: "refund", Thread: "t"}, allowed("binding: line 5"),
		},
		"does not see another graph": {
			access.Request{Caller: caller("fay", "finance"), Method: resume, Graph: "refunds", Thread: "t"}, hidden("role: answerer, admin"),
		},
		"a name of a pattern is no prefix": {
			access.Request{Caller: caller("fay", "finance"), Method: resume, Graph: "xpayout", Thread: "t"}, hidden("role: answerer, admin"),
		},
		"an answerer knows the thread": {
			access.Request{Caller: caller("fay", "finance"), Method: deleteThread, Graph: "refund", Thread: "t"},
			refused("role: operator, admin"),
		},
		"an answerer does not know the graph": {
			access.Request{Caller: caller("fay", "finance"), Method: putGraph, Graph: "refund"}, hidden("role: author, admin"),
		},
		"the graph of the thread is not known": {
			access.Request{Caller: caller("fay", "finance"), Method: resume, Thread: "t"}, hidden("role: answerer, admin"),
		},
		"a list of many graphs": {
			access.Request{Caller: caller("fay", "finance"), Method: methodPrefix + "InterruptService/ListInterrupts"}, allowed("binding: line 5"),
		},
		"an item of the list": {
			access.Request{Caller: caller("fay", "finance"), Method: methodPrefix + "InterruptService/ListInterrupts", Graph: "onboard", Thread: "t"},
			hidden("role: viewer, answerer, starter, operator, admin"),
		},
		"a list that it has not is no secret": {
			access.Request{Caller: caller("fay", "finance"), Method: listThreads}, refused("role: viewer, starter, operator, admin"),
		},
		"an author puts": {
			access.Request{Caller: caller("ana"), Method: putGraph, Graph: "payout"}, allowed("binding: line 8"),
		},
		"and may not remove a question": {
			access.Request{Caller: caller("ana"), Method: putGraph, Graph: "payout", Rights: []access.Right{access.ApproveChanges}},
			refused("right: approve-changes"),
		},
		"an author with the right": {
			access.Request{Caller: caller("ben"), Method: putGraph, Graph: "payout", Rights: []access.Right{access.ApproveChanges}},
			allowed("binding: line 8"),
		},
		"the right is for one graph": {
			access.Request{Caller: caller("ben"), Method: putGraph, Graph: "refund", Rights: []access.Right{access.ApproveChanges}},
			refused("right: approve-changes"),
		},
		"an admin has not the right": {
			access.Request{
				Caller: access.Caller{Name: "root", Tenant: "acme", Roles: []string{"admin"}}, Method: putGraph, Graph: "payout",
				Rights: []access.Right{access.ApproveChanges},
			},
			refused("right: approve-changes"),
		},
		"an author does not see threads": {
			access.Request{Caller: caller("ana"), Method: deleteThread, Graph: "payout", Thread: "t"}, hidden("role: operator, admin"),
		},
		"a new thread is seen as its graph": {
			access.Request{Caller: caller("ana"), Method: startRun, Graph: "payout"}, refused("role: starter, operator, admin"),
		},
		"a condition holds": {
			access.Request{Caller: oncall, Method: deleteThread, Graph: "payout", Thread: "t", Now: noon}, allowed("binding: line 14"),
		},
		"a condition holds in any tenant": {
			access.Request{Caller: oncall, Tenant: "globex", Method: deleteThread, Graph: "payout", Thread: "t", Now: noon},
			allowed("binding: line 14"),
		},
		"in no tenant of others": {
			access.Request{Caller: oncall, Tenant: "initech", Method: deleteThread, Graph: "payout", Thread: "t", Now: noon}, hidden("tenant"),
		},
		"a condition is false": {
			access.Request{Caller: oncall, Method: deleteThread, Graph: "payout", Thread: "t", Now: noon.Add(6 * time.Hour)},
			hidden("condition: line 14"),
		},
		"a condition of how": {
			access.Request{Caller: caller("olga", "oncall", "staff"), Method: updateAsked, Graph: "payout", Thread: "t", Now: noon},
			refused("condition: line 14"),
		},
		"a condition fails": {
			access.Request{Caller: caller("clumsy", "a"), Method: getThread, Graph: "payout", Thread: "t"}, hidden("condition: line 25"),
		},
		"a condition that failed takes nothing away": {
			access.Request{Caller: caller("clumsy", "staff"), Method: getThread, Graph: "payout", Thread: "t"}, allowed("binding: line 3"),
		},
		"a binding of another tenant": {
			access.Request{Caller: guest, Method: getThread, Graph: "payout", Thread: "public-1"},
			hidden("role: viewer, answerer, starter, operator, admin"),
		},
		"in that tenant": {
			access.Request{Caller: guest, Tenant: "globex", Method: getThread, Graph: "payout", Thread: "public-1"}, allowed("binding: line 21"),
		},
		"another thread there": {
			access.Request{Caller: guest, Tenant: "globex", Method: getThread, Graph: "payout", Thread: "t"}, hidden("condition: line 21"),
		},
		"a worker connects": {access.Request{Caller: caller("bot"), Method: connect}, allowed("binding: line 18")},
		"a worker serves a graph": {
			access.Request{Caller: caller("bot"), Method: connect, Graph: "greet"}, allowed("binding: line 18"),
		},
		"a worker may not serve every graph": {
			access.Request{Caller: caller("bot"), Method: connect, Graph: "payout"}, hidden("role: worker, admin"),
		},
		"a worker may not put graphs": {
			access.Request{Caller: caller("bot"), Method: connect, Graph: "greet", Rights: []access.Right{access.BringGraphs}},
			hidden("right: bring-graphs"),
		},
		"two rights of two bindings": {
			access.Request{
				Caller: access.Caller{Name: "ben", Groups: []string{"oncall"}, Tenant: "acme", How: "certificate"},
				Method: methodPrefix + "RegistryService/DeleteGraph", Graph: "payout",
				Rights: []access.Right{access.DeleteInUse, access.ApproveChanges}, Now: noon,
			},
			allowed("binding: line 8"),
		},
		"no caller":                      {access.Request{Method: methodPrefix + "RegistryService/GetServerInfo"}, hidden("caller")},
		"a method of no service":         {access.Request{Caller: oncall, Method: "/graphd.v1.GraphService/Erase"}, hidden("method")},
		"a method that graphd calls":     {access.Request{Caller: oncall, Method: methodPrefix + "NodeService/ExecuteTask"}, hidden("method")},
		"a caller without a tenant":      {access.Request{Caller: access.Caller{Name: "ana"}, Method: putGraph, Graph: "g"}, hidden("tenant")},
		"needs no tenant":                {access.Request{Caller: access.Caller{Name: "ana"}, Method: "/grpc.health.v1.Health/Check"}, allowed("any caller")},
		"roles of the credentials":       {access.Request{Caller: access.Caller{Name: "key", Tenant: "acme", Roles: []string{"starter"}}, Method: startRun, Graph: "g"}, allowed("own role")},
		"an unknown role of credentials": {access.Request{Caller: access.Caller{Name: "key", Tenant: "acme", Roles: []string{"root", ""}}, Method: startRun, Graph: "g"}, hidden("role: starter, operator, admin")},
		"an unknown right":               {access.Request{Caller: access.Caller{Name: "key", Tenant: "acme", Roles: []string{"admin"}}, Method: startRun, Graph: "g", Rights: []access.Right{"fly"}}, refused("right: unknown")},
		"roles of the credentials in a tenant that is not its own": {
			access.Request{
				Caller: access.Caller{Name: "key", Tenant: "acme", Tenants: []string{"acme", "globex"}, Roles: []string{"admin"}},
				Tenant: "globex", Method: startRun, Graph: "g",
			},
			hidden("role: starter, operator, admin"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, p.Decide(c.request))
		})
	}
}

// What is allowed for every graph is allowed for each: bindings for some graphs, and
// conditions on what is not known, do not count.
func TestDecisionsForEveryGraph(t *testing.T) {
	for text, want := range map[string]struct{ forThread, forAll, forList bool }{
		`roles: [viewer]`:                                           {true, true, true},
		`roles: [viewer], graphs: [payout]`:                         {false, false, false},
		`roles: [viewer], graphs: ["*"]`:                            {false, false, false},
		`roles: [viewer], condition: 'graph != "secret"'`:           {false, false, false},
		`roles: [viewer], condition: 'graph == "" || graph == "x"'`: {false, false, false},
		`roles: [viewer], condition: 'thread.startsWith("t")'`:      {true, false, false},
		`roles: [viewer], condition: 'principal.name == "ana"'`:     {true, true, true},
		`roles: [viewer], condition: '.graph != "secret"'`:          {false, false, false},
		`roles: [viewer], condition: '[graph].exists(g, g != "s")'`: {false, false, false},
		`roles: [answerer]`:                                         {true, true, false},
		`roles: [viewer], condition: 'principal.name == "another"'`: {false, false, false},
	} {
		p := parse(t, "bindings: [{principals: [ana], "+text+"}]")
		request := access.Request{Caller: access.Caller{Name: "ana", Tenant: "acme"}, Method: getThread, Extent: access.EveryGraph, Thread: "t"}
		require.Equal(t, want.forThread, p.Decide(request).Allowed, text)
		request.Thread = ""
		require.Equal(t, want.forAll, p.Decide(request).Allowed, text)
		request.Method = listThreads
		require.Equal(t, want.forList, p.Decide(request).Allowed, text)
	}
}

// What is allowed for a graph is allowed for each of its threads.
func TestDecisionsForAGraphWithAnyThread(t *testing.T) {
	for text, want := range map[string]bool{
		`roles: [viewer], graphs: [payout]`:                               true,
		`roles: [viewer], graphs: [refund]`:                               false,
		`roles: [viewer], condition: 'graph == "payout"'`:                 true,
		`roles: [viewer], condition: 'graph != "payout"'`:                 false,
		`roles: [viewer], condition: 'thread != "t"'`:                     false,
		`roles: [viewer], condition: 'graph == "payout" || thread == ""'`: false,
	} {
		p := parse(t, "bindings: [{principals: [ana], "+text+"}]")
		require.Equal(t, want, p.Decide(access.Request{
			Caller: access.Caller{Name: "ana", Tenant: "acme"}, Method: listThreads, Extent: access.EveryGraph, Graph: "payout",
		}).Allowed, text)
	}
}

// An item of a list is decided by its own graph, and by no other.
func TestItemsAreDecidedByTheirGraphs(t *testing.T) {
	p := parse(t, `bindings: [{roles: [viewer], principals: [ana], graphs: ["pay*"]}, {roles: [viewer], principals: [ben], condition: 'graph == "" || thread == "t1"'}]`)
	item := func(name, graph, thread string) bool {
		return p.Decide(access.Request{
			Caller: access.Caller{Name: name, Tenant: "acme"}, Method: listThreads, Extent: access.OneItem, Graph: graph, Thread: thread,
		}).Allowed
	}
	require.True(t, item("ana", "payout", "t"))
	require.False(t, item("ana", "refund", "t"))
	require.False(t, item("ana", "", "t"), "a thread without a graph is covered by bindings for all graphs")
	require.True(t, item("ben", "", "t"))
	require.True(t, item("ben", "refund", "t1"))
	require.False(t, item("ben", "refund", "t"))
}

// Conditions see what they are said to see.
func TestConditionsSeeTheRequest(t *testing.T) {
	request := access.Request{
		Caller: access.Caller{Name: "ana", Groups: []string{"a", "b"}, Tenant: "acme", Tenants: []string{"globex"}, How: "jwt"},
		Method: getThread, Tenant: "globex", Graph: "g", Thread: "t", Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	for condition, want := range map[string]bool{
		`principal.name == "ana"`:                                  true,
		`principal.tenant == "acme" && tenant == "globex"`:         true,
		`"b" in principal.groups && size(principal.groups) > 1`:    true,
		`principal.how == "jwt"`:                                   true,
		`method.endsWith("/GetThread")`:                            true,
		`graph == "g" && thread == "t"`:                            true,
		`now == timestamp("2026-03-01T12:00:00Z")`:                 true,
		`now - timestamp("2026-03-01T11:00:00Z") < duration("2h")`: true,
		`principal.groups.exists(g, g.matches("^b+$"))`:            true,
		`false`:                         false,
		`1 / (size(thread) - 1) == 0`:   false,
		`principal.groups[2] == "c"`:    false,
		`now.getHours("Nowhere") == 12`: false,
	} {
		p := parse(t, "bindings:\n- roles: [viewer]\n  principals: [ana]\n  tenants: ['*']\n  condition: |\n    "+condition+"\n")
		require.Equal(t, want, p.Decide(request).Allowed, condition)
	}
}

// A caller with very many groups can't make a condition expensive.
func TestConditionsHaveABudget(t *testing.T) {
	p := parse(t, `{bindings: [{roles: [viewer], principals: [ana],
		condition: 'principal.groups.all(x, principal.groups.all(y, x == y))'}]}`)
	request := access.Request{Caller: access.Caller{Name: "ana", Tenant: "acme"}, Method: listThreads}
	for range 100 {
		request.Caller.Groups = append(request.Caller.Groups, "g")
	}
	require.True(t, p.Decide(request).Allowed)
	for range 10_000 {
		request.Caller.Groups = append(request.Caller.Groups, "g")
	}
	d := p.Decide(request)
	require.False(t, d.Allowed)
	require.Equal(t, "condition: line 1", d.Rule)
}

// manyBindings has a thousand bindings for groups, and one with a condition.
func manyBindings(tb testing.TB) *access.Policy {
	tb.Helper()
	var text strings.Builder
	text.WriteString("bindings:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "- {roles: [viewer, starter], groups: [g%d], graphs: ['payout*']}\n", i)
	}
	return parse(tb, text.String()+"- {roles: [operator], groups: [oncall], condition: 'now.getHours() < 18'}\n")
}

func benchmarkRequests() map[string]access.Request {
	caller := access.Caller{Name: "ana", Groups: []string{"staff", "g500", "oncall"}, Tenant: "acme"}
	return map[string]access.Request{
		"allowed":   {Caller: caller, Method: startRun, Graph: "payout-eu", Thread: "t"},
		"refused":   {Caller: caller, Method: resume, Graph: "payout-eu", Thread: "t"},
		"condition": {Caller: caller, Method: deleteThread, Graph: "payout-eu", Thread: "t"},
	}
}

// Only conditions allocate.
func TestDecisionsWithoutConditionsDoNotAllocate(t *testing.T) {
	p := manyBindings(t)
	for _, name := range []string{"allowed", "refused"} {
		request := benchmarkRequests()[name]
		require.Equal(t, name == "allowed", p.Decide(request).Allowed)
		require.Zero(t, testing.AllocsPerRun(100, func() { p.Decide(request) }), name)
	}
	require.True(t, p.Decide(benchmarkRequests()["condition"]).Allowed)
}

func BenchmarkDecide(b *testing.B) {
	p := manyBindings(b)
	for name, request := range benchmarkRequests() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(request)
			}
		})
	}
}
