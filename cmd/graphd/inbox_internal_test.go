package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// staffGraph asks a group with a priority, and does something later.
const staffGraph = `graph: pay
channels: {order: {}, urgency: {}, decision: {}}
nodes:
  review:
    ask:
      message: "'# Pay order ' + string(state.order) + '?\\n\\nThe **receipt** is attached.\\u001b[2J'"
      value: {order: state.order}
      schema:
        type: object
        required: [decision]
        properties:
          decision: {enum: [pay, refuse]}
          amount: {type: integer, minimum: 1, description: What to pay}
      people: {groups: [staff], approvals: 2}
      priority: high
      steps:
      - {after: 30m, remind: {}}
      - {after: 1h, escalate: {groups: [leads], priority: urgent}}
      - {after: 3h, default: {decision: refuse}}
      update: {decision: answer.decision}
edges: [START -> review -> END]
`

// inboxCase is a server with questions of two graphs: three for finance that are never due,
// and two for staff that are urgent and due.
type inboxCase struct {
	*peopleServer

	t *testing.T
}

func startInboxCase(t *testing.T) *inboxCase {
	t.Helper()
	c := &inboxCase{startPeopleServer(t), t}
	_, err := graphdv1.NewRegistryServiceClient(c.conn).PutGraph(c.as(t, "eva"), putRequest(staffGraph))
	require.NoError(t, err)
	for _, thread := range []string{"refund-1", "refund-2", "refund-3"} {
		c.ask(t, thread)
	}
	for _, thread := range []string{"pay-1", "pay-2"} {
		r := c.run("carl", "run", "pay", "--thread", thread, "--input", `{"order": 7}`)
		require.Equal(t, exit.CodeWaiting, r.code, r.err)
	}
	claim := &graphdv1.ClaimInterruptRequest{
		ThreadId: "refund-2", InterruptId: c.question(t, "refund-2").GetInterruptId(), Duration: durationpb.New(time.Hour),
	}
	_, err = graphdv1.NewInterruptServiceClient(c.conn).ClaimInterrupt(c.as(t, "dora"), claim)
	require.NoError(t, err)
	return c
}

func (c *inboxCase) run(caller string, args ...string) commandResult {
	c.t.Helper()
	return c.commands.runCommand(c.t, append(args, "--token", c.tokens[caller])...)
}

// list returns the threads that the inbox lists with some flags, and what it says of their
// number.
func (c *inboxCase) list(caller string, flags ...string) (threads, says string) {
	c.t.Helper()
	r := c.run(caller, append([]string{"inbox"}, flags...)...)
	require.Zero(c.t, r.code, r.err)
	found := regexp.MustCompile(`\b(?:refund|pay)-\d\b`).FindAllString(r.out, -1)
	return strings.Join(found, " "), strings.TrimSpace(r.err)
}

func TestInboxFiltersByItsFlags(t *testing.T) {
	c := startInboxCase(t)
	for _, test := range []struct {
		caller, flags, threads, says string
	}{
		{"ana", "", "refund-1 refund-2 refund-3 pay-1 pay-2", "5 open questions"},
		{"ana", "--mine", "refund-1 refund-2 refund-3", "3 open questions"},
		{"ben", "--mine", "refund-1 refund-2 refund-3 pay-1 pay-2", "5 open questions"},
		{"carl", "--mine", "", ""},
		{"ana", "--group staff", "pay-1 pay-2", "2 open questions"},
		{"ana", "--group nobody", "", ""},
		{"ana", "--graph refund", "refund-1 refund-2 refund-3", "3 open questions"},
		{"ana", "--due 2h", "pay-1 pay-2", "2 open questions"},
		{"ana", "--due 1m", "", ""},
		{"ana", "--due 2099-01-01", "pay-1 pay-2", "2 open questions"},
		{"ana", "--priority high", "pay-1 pay-2", "2 open questions"},
		{"ana", "--priority HIGH --graph refund", "", ""},
		{"ana", "--priority normal --graph refund", "refund-1 refund-2 refund-3", "3 open questions"},
		{"ana", "--claimed-by dora", "refund-2", "1 open question"},
		{"dora", "--mine --claimed-by dora", "refund-2", "1 open question"},
		{"ana", "--sort due", "pay-1 pay-2", "2 open questions with a due time; others are listed without --sort due"},
		{"ana", "--sort due --due 2h", "pay-1 pay-2", "2 open questions with a due time"},
		{"ana", "--sort created", "refund-1 refund-2 refund-3 pay-1 pay-2", "5 open questions"},
		{"ana", "--limit 2", "refund-1 refund-2", "2 of 5 open questions"},
		{"ana", "--limit 5", "refund-1 refund-2 refund-3 pay-1 pay-2", "5 open questions"},
		{"ana", "--group finance --limit 2", "refund-1 refund-2", "2 of 3 open questions"},
		{"ana", "--group finance --graph refund -n 1", "refund-1", "1 of at most 3 open questions"},
		{"ana", "--priority normal --graph refund -n 1", "refund-1", "1 of at most 3 open questions"},
		{"ana", "--due 2h --limit 1", "pay-1", "1 of at most 5 open questions"},
		{"ana", "--sort due --limit 1", "pay-1", "1 of at most 5 open questions with a due time; others are listed without --sort due"},
		{"ben", "--mine --limit 1", "refund-1", "1 of at most 5 open questions"},
	} {
		t.Run(test.caller+" "+test.flags, func(t *testing.T) {
			threads, says := c.list(test.caller, strings.Fields(test.flags)...)
			require.Equal(t, test.threads, threads)
			require.Equal(t, test.says, says)
		})
	}
}

// A filter of the user is joined to the flags. How many it finds is said where the server
// counts it.
func TestInboxFlagsJoinTheFilter(t *testing.T) {
	c := startInboxCase(t)
	threads, says := c.list("ana", "--filter", `node = "review"`, "--group", "staff", "-n", "1")
	require.Equal(t, "pay-1", threads)
	require.Equal(t, "1 of at most 2 questions", says)
	_, says = c.list("ana", "--filter", `graph = "refund"`, "-n", "1")
	require.Equal(t, "1 of 3 questions", says)
	_, says = c.list("ana", "--filter", `state = "*"`, "-n", "1")
	require.Equal(t, "1 question; there may be more", says)

	r := c.run("ana", "inbox", "--graph", "refund", "--filter", `graph = "pay"`)
	require.Contains(t, r.err, "graph is asked for twice")
	r = c.run("ana", "inbox", "--group", `a"b\c`)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "no open questions")
	r = c.run("ana", "inbox", "--graph", "refund", "--sort", "due")
	require.Equal(t, "no open questions with a due time; others are listed without --sort due\n", r.out)
	r = c.run("ana", "inbox", "--group", "staff", "-o", "jsonl")
	require.Equal(t, 2, strings.Count(r.out, "\n"), "programs get the questions of the flags: %s", r.out)
	require.Empty(t, r.err)
}

// A table at a terminal is cut to its width, and the beginning of an id that it shows names
// the question.
func TestInboxTableOfATerminal(t *testing.T) {
	c := startInboxCase(t)
	c.commands.columns = 80
	r := c.run("ana", "inbox", "--graph", "pay")
	id := regexp.MustCompile(`\n(.*pay-2) +([0-9a-f]{8})\n`).FindStringSubmatch(r.out)
	require.NotNil(t, id, r.out)
	require.Equal(t, "high      Pay order 7?  group staff  in 30 m  0 of 2  pay-2", id[1])
	require.Contains(t, c.run("ben", "inbox", "take", "pay-2", "--interrupt", id[2]).out, "question "+id[2])
	require.Contains(t, c.run("ana", "inbox", "--graph", "pay").out, "taken by ben; group…")
	require.Contains(t, c.run("ana", "inbox", "show", "pay-2", "--interrupt", id[2][:4]).out, "  id        "+id[2])
}

func TestInboxShowsAllOfAQuestion(t *testing.T) {
	c := startInboxCase(t)
	c.run("ben", "inbox", "take", "pay-1", "--for", "1h")
	require.Equal(t, exit.CodeWaiting, c.run("ben", "resume", "pay-1", "--value", `{"decision":"pay"}`, "--note", "seen it").code)
	r := c.run("ana", "inbox", "show", "pay-1")
	require.Zero(t, r.code, r.err)
	for _, part := range []string{
		"pay-1  review asks\n  | # Pay order 7?\n  | \n  | The **receipt** is attached.\\u{1b}[2J\n",
		"\n  graph     pay\n", "\n  node      review\n", "\n  run       ", "\n  state     open\n", "\n  priority  high\n",
		"\n  for       members of staff\n  policy    1 of 2 approvals\n", "(in 30 m)\n",
		"\n  value\n    order  7\n",
		"\n  answer\n    decision  \"pay\" | \"refuse\"  required\n    amount    integer from 1    optional  What to pay\n",
		"\n  votes\n    ", "  ben  {\"decision\":\"pay\"}\n      | seen it\n",
		"\n  while nobody decides\n    in 30 m  reminds all who may answer\n    in 1 h   goes to leads, urgent from then on\n" +
			"    in 3 h   expires, and the answer is {\"decision\":\"refuse\"}\n",
		"\n  trail\n    ", "  asked\n        for  2 of members of staff\n", "  voted by ben  {\"decision\":\"pay\"}\n",
		"\ngraphd resume pay-1 --server ",
	} {
		require.Contains(t, r.out, part)
	}
	require.NotContains(t, r.out, "etag")
	c.commands.isTerminal = true
	require.Contains(t, c.run("ana", "inbox", "show", "pay-1").out, "\ngraphd resume pay-1 --server ", "the command asks at a terminal")
	require.Contains(t, c.run("ana", "inbox", "--thread", "pay-1").out, "\n    graphd resume pay-1 --server ")
	c.commands.isTerminal = false
	require.Contains(t, c.run("ana", "inbox", "show", "pay-1", "-o", "json").out, `"interruptId": "`)

	require.Zero(t, c.run("ben", "inbox", "show", "refund-2").code)
	require.Contains(t, c.run("ben", "inbox", "show", "refund-2").out, "\n  taken by  dora, until ")
	require.Equal(t, exit.CodeDone, c.run("ben", "resume", "refund-3", "--value", `"no"`).code)
	r = c.run("ana", "inbox", "show", "refund-3")
	for _, part := range []string{"\n  state     consumed\n", "\n  answered  \"no\"\n  by        ben  ", "0 of 2 approvals; agrees when answer != 'no'; not eva"} {
		require.Contains(t, r.out, part, "the last question of a thread without open ones")
	}
	require.NotContains(t, r.out, "graphd resume")
}

// A shell completes the values of the flags.
func TestInboxFlagsComplete(t *testing.T) {
	c := startInboxCase(t)
	complete := func(flag string, env map[string]string) string {
		t.Helper()
		return commandRunner{env: env}.runCommand(t, "__complete", "inbox", flag, "").out
	}
	require.Equal(t, "low\nnormal\nhigh\nurgent\n:4\n", complete("--priority", nil))
	require.Equal(t, "created\ndue\n:4\n", complete("--sort", nil))
	require.Contains(t, complete("--due", nil), "8h\n")
	require.Equal(t, ":4\n", complete("--group", nil))
	served := map[string]string{"GRAPHD_SERVER": c.commands.server, "GRAPHD_TOKEN": c.tokens["ana"]}
	require.Equal(t, "pay\nrefund\n:4\n", complete("--graph", served))
	require.Equal(t, ":4\n", complete("--graph", map[string]string{"GRAPHD_SERVER": "127.0.0.1:1"}))
}

// A shell completes arguments with the threads, questions and graphs of the server.
func TestArgumentsComplete(t *testing.T) {
	c := startInboxCase(t)
	served := map[string]string{"GRAPHD_SERVER": c.commands.server, "GRAPHD_TOKEN": c.tokens["ana"]}
	complete := func(words ...string) string {
		t.Helper()
		return commandRunner{env: served}.runCommand(t, append([]string{"__complete"}, append(words, "")...)...).out
	}
	for _, words := range [][]string{{"resume"}, {"inbox", "show"}, {"inbox", "take"}, {"inbox", "link"}} {
		require.Contains(t, complete(words...), "refund-1\tRefund", "%v", words)
		require.NotContains(t, complete(words...), "paid", "%v: it asks nothing", words)
	}
	for _, words := range [][]string{{"state"}, {"watch"}, {"threads", "copy"}, {"history"}} {
		require.Contains(t, complete(words...), "refund-1\trefund, interrupted\n", "%v", words)
	}
	require.Equal(t, "pay\nrefund\n:4\n", complete("run"))
	require.Equal(t, "pay\nrefund\n:4\n", complete("graph", "show"))
	require.Equal(t, ":4\n", complete("threads", "copy", "refund-1"), "the new name")
	require.Equal(t, ":0\n", complete("graph", "put"), "files")
	questions := complete("inbox", "show", "refund-1", "--interrupt")
	require.Regexp(t, `^[0-9a-f]{32}\tRefund .*\n:4\n$`, questions)
	require.Equal(t, ":4\n", complete("resume", "--interrupt"), "the thread comes first")
	served["GRAPHD_SERVER"] = "127.0.0.1:1"
	require.Equal(t, ":4\n", complete("resume"))
}
