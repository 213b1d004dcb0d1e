package output

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func TestColumnsOfTextAreCounted(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "refund": 6, "é": 1, "e\u0301": 1, "退款": 4, "ﾊﾝｶｸ": 4, "ＡＢ": 4, "👍": 2, "✈": 1, "✈\ufe0f": 2, "🇩🇪": 2,
		"한국": 4, "ᄒ\u1161\u11ab": 2, "…": 1, "ม\u0e31": 1,
	} {
		require.Equal(t, want, countColumns(text), text)
	}
}

func TestTextIsCutToColumns(t *testing.T) {
	for _, test := range []struct {
		text, want SafeText
		most       int
	}{
		{"refund", "refund", 6},
		{"refund", "refu…", 5},
		{"a refund", "a…", 3},
		{"退款单", "退款单", 6},
		{"退款单", "退款…", 5},
		{"退款单", "退…", 4},
		{"e\u0301e\u0301e\u0301", "e\u0301…", 2},
		{`ab\u{202e}cd`, "ab…", 10},
		{`ab\u{202e}cde`, `ab\u{202e}c…`, 12},
		{"refund", "…", 1},
	} {
		require.Equal(t, test.want, cutColumns(test.text, test.most), "%s to %d", test.text, test.most)
	}
}

// No line of a table is wider than its terminal, and none of a message.
func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	q := &graphdv1.Interrupt{
		ThreadId: "0b0c5d1e-8a1f-4a86-9d9a-3c1c0f6d1c2b", InterruptId: strings.Repeat("a", 32),
		Message: strings.Repeat("退款 Müller\u202e 👍 ", 20), Assignees: []string{strings.Repeat("退", 40)},
		People: &graphdv1.People{Approvals: 2, Groups: []string{"finance"}},
	}
	for columns := leastTitleWidth*2 + gapWidth; columns < 200; columns++ {
		var b strings.Builder
		p := NewPrinter(&b)
		p.PrintQuestionTable([]*graphdv1.Interrupt{q, {ThreadId: "t"}}, time.Now(), columns)
		p.columns = max(columns, leastTextWidth+10)
		p.printMessageText("  ", "1. "+q.GetMessage())
		for line := range strings.Lines(b.String()) {
			require.LessOrEqual(t, countColumns(strings.TrimSuffix(line, "\n")), max(columns, leastTextWidth+10), line)
		}
	}
}

func TestMarkdownStaysReadable(t *testing.T) {
	message := "# Refund\n\n- the customer says that it came too late\n  > and was damaged, as you see\n" +
		"```\nall of this code stays on one single line\n```\n| a long row of a table | stays as well |\n" +
		"12. aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b\n\tanswer: approved\x1b[2J"
	var b strings.Builder
	(&Printer{out: &b, columns: 32}).printMessageText("  ", message)
	require.Equal(t, `  | # Refund
  | 
  | - the customer says that it
  |   came too late
  |   > and was damaged, as you
  |     see
  | `+"```"+`
  | all of this code stays on one single line
  | `+"```"+`
  | | a long row of a table | stays as well |
  | 12. aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  |     b
  |     answer:
  |     approved\u{1b}[2J
`, b.String())
	b.Reset()
	NewPrinter(&b).printMessageText("", strings.Repeat("a ", 100))
	require.Equal(t, 1, strings.Count(b.String(), "\n"), "without a terminal lines stay as they are")

	b.Reset()
	q := &graphdv1.Interrupt{Node: "review", Message: "Refund?\n\nthe customer says that it came too late"}
	(&Printer{out: &b, columns: 32}).PrintInterrupt(q)
	require.Contains(t, b.String(), "  review asks: Refund?\n    | \n    | the customer says that it\n    | came too late\n    id  ")
}
