package output_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// tableNow is the time at which tables are shown.
var tableNow = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)

func after(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(tableNow.Add(d)) }

func jsonPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

func openQuestion(thread, message string) *graphdv1.Interrupt {
	return &graphdv1.Interrupt{
		InterruptId: "05da50a0d1467e31d09c2a81cd15d5e6", ThreadId: thread, Message: message, Node: "review", Graph: "refund",
		State: graphdv1.InterruptState_INTERRUPT_STATE_OPEN, CreateTime: after(-time.Hour),
	}
}

// listedQuestions are questions with all that a table shows.
func listedQuestions() []*graphdv1.Interrupt {
	voted := openQuestion("order-7", "# Refund 120 for order 7, which came too late and was damaged?\n\nSee the *receipt*.")
	voted.Priority = graphdv1.Priority_PRIORITY_URGENT
	voted.People = &graphdv1.People{Users: []string{"ana"}, Groups: []string{"finance"}, Approvals: 2}
	voted.Votes = []*graphdv1.Vote{
		{Principal: "ana", Agrees: true, Value: jsonPayload(`{"a": 1, "b": 2}`)},
		{Principal: "ben", Agrees: true, Value: jsonPayload(`{"a": 7}`)},
	}
	voted.DueTime = after(2 * time.Hour)
	taken := openQuestion("order-9", "退款订单九，客户说商品在运输途中损坏了，请尽快处理")
	taken.People = &graphdv1.People{Groups: []string{"finance"}}
	taken.ClaimedBy, taken.ClaimExpireTime = "ben", after(time.Minute)
	taken.DueTime = after(-3 * time.Minute)
	plain := openQuestion("t1", "")
	plain.Reason, plain.ClaimedBy, plain.ClaimExpireTime = "approval", "eva", after(-time.Second)
	return []*graphdv1.Interrupt{voted, taken, plain}
}

func printTable(all []*graphdv1.Interrupt, columns int) string {
	var b strings.Builder
	output.NewPrinter(&b).PrintQuestionTable(all, tableNow, columns)
	return b.String()
}

// tables are the same questions in terminals of different widths; 0 is none.
var tables = map[int]string{
	0: `
PRIORITY  TITLE                                                         WHO                          DUE      VOTES   THREAD   ID
urgent    Refund 120 for order 7, which came too late and was damaged?  ana; group finance           in 2 h   1 of 2  order-7  05da50a0d1467e31d09c2a81cd15d5e6
normal    退款订单九，客户说商品在运输途中损坏了，请尽快处理            taken by ben; group finance  3 m ago  -       order-9  05da50a0d1467e31d09c2a81cd15d5e6
normal    review asks (approval)                                        -                            -        -       t1       05da50a0d1467e31d09c2a81cd15d5e6
`,
	140: `
PRIORITY  TITLE                                                         WHO                          DUE      VOTES   THREAD   ID
urgent    Refund 120 for order 7, which came too late and was damaged?  ana; group finance           in 2 h   1 of 2  order-7  05da50a0
normal    退款订单九，客户说商品在运输途中损坏了，请尽快处理            taken by ben; group finance  3 m ago  -       order-9  05da50a0
normal    review asks (approval)                                        -                            -        -       t1       05da50a0
`,
	80: `
PRIORITY  TITLE                       WHO               DUE      VOTES   THREAD
urgent    Refund 120 for order 7, w…  ana; group fina…  in 2 h   1 of 2  order-7
normal    退款订单九，客户说商品在…   taken by ben; g…  3 m ago  -       order-9
normal    review asks (approval)      -                 -        -       t1
`,
	40: `
TITLE                            THREAD
Refund 120 for order 7, which…   order-7
退款订单九，客户说商品在运输途…  order-9
review asks (approval)           t1
`,
}

func TestATableOfQuestionsFitsItsTerminal(t *testing.T) {
	for columns, want := range tables {
		require.Equal(t, strings.TrimPrefix(want, "\n"), printTable(listedQuestions(), columns), "%d columns", columns)
	}
}

// A terminal shows what there is to say; where none is, all columns stay.
func TestATableLeavesOutWhatSaysNothing(t *testing.T) {
	plain := listedQuestions()[2:]
	require.Equal(t, "PRIORITY  TITLE                   THREAD  ID\nnormal    review asks (approval)  t1      05da50a0\n", printTable(plain, 80))
	require.Equal(t, `PRIORITY  TITLE                   WHO  DUE  VOTES  THREAD  ID
normal    review asks (approval)  -    -    -      t1      05da50a0d1467e31d09c2a81cd15d5e6
`, printTable(plain, 0))

	plain[0].State, plain[0].Dismissed = graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED, true
	require.Contains(t, printTable(plain, 0), "  STATE\n", "a question that is not open says so")
	require.Contains(t, printTable(plain, 80), "  dismissed\n")
}

// What a graph writes is on its line, is whole where there is no terminal, and obeys nothing.
func TestATableShowsHostileText(t *testing.T) {
	q := openQuestion("t\x1b[2J", "\r\n \n## pay\x1b[31m 5\u202e\nurgent    pay 7")
	q.Assignees = []string{"ana\nurgent", "ana\nurgent"}
	require.Equal(t, `PRIORITY  TITLE                    WHO             DUE  VOTES  THREAD      ID
normal    pay\u{1b}[31m 5\u{202e}  ana\u{a}urgent  -    -      t\u{1b}[2J  05da50a0d1467e31d09c2a81cd15d5e6
`, printTable([]*graphdv1.Interrupt{q}, 0))
	require.NotContains(t, printTable([]*graphdv1.Interrupt{q}, 60), "\x1b")
}

func TestVotesCountForTheValueThatMostAgreeOn(t *testing.T) {
	q := openQuestion("t", "")
	require.Empty(t, output.FormatVotes(q))
	q.People = &graphdv1.People{Approvals: 3}
	require.Equal(t, "0 of 3", output.FormatVotes(q))
	for _, value := range []string{`{"b":2.0,"a":1}`, `{"a":1, "b":2.0}`, `{"a":1,"b":2}`} {
		q.Votes = append(q.Votes, &graphdv1.Vote{Agrees: true, Value: jsonPayload(value)})
	}
	q.Votes = append(q.Votes, &graphdv1.Vote{Value: jsonPayload(`{"a":1,"b":2.0}`)}, &graphdv1.Vote{})
	require.Equal(t, "2 of 3", output.FormatVotes(q), "numbers count as they are written, the order of keys does not")
}

func TestDistancesAndCountsInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s ago", time.Second: "in 1 s", 59_600 * time.Millisecond: "in 1 m", -3 * time.Minute: "3 m ago",
		2*time.Hour - time.Millisecond: "in 2 h", 47 * time.Hour: "in 47 h", -49 * time.Hour: "2 d ago",
	} {
		require.Equal(t, want, output.FormatDistance(d), d)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1240: "1,240", 1234567: "1,234,567", -1240: "-1,240", -240: "-240"} {
		require.Equal(t, want, output.FormatCount(n))
	}
}

// Votes that look the same differ where it is secret while the question is open.
func TestVotesWithSecretParts(t *testing.T) {
	value := &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `{"pin":{"__redacted__": true}}`}}
	q := &graphdv1.Interrupt{
		People: &graphdv1.People{Approvals: 2}, State: graphdv1.InterruptState_INTERRUPT_STATE_OPEN, Secret: []string{"/pin"},
		Votes: []*graphdv1.Vote{{Principal: "ana", Agrees: true, Value: value}, {Principal: "ben", Agrees: true, Value: value}},
	}
	require.Equal(t, "1 of 2", output.FormatVotes(q))
	q.State = graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED
	require.Equal(t, "2 of 2", output.FormatVotes(q))
}
