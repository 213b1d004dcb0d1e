package cli_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
)

func TestPayloadsAreTheJSONTheyCarry(t *testing.T) {
	when := timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for want, m := range map[string]*graphdv1.Thread{
		`{}`: {},
		`{"threadId":"<&>","metadata":{"a":"1","b":"2"},"state":"THREAD_STATE_BUSY"}`: {
			ThreadId: "<&>", State: graphdv1.ThreadState_THREAD_STATE_BUSY, Metadata: map[string]string{"b": "2", "a": "1"},
		},
		`{"values":{"b":9007199254740993,"a":1.0,"é":"<"},"createTime":"2026-01-02T03:04:05Z"}`: {
			Values: newPayload("{ \"b\": 9007199254740993,\n \"a\": 1.0, \"é\": \"<\" }"), CreateTime: when,
		},
		`{"values":null,"interrupts":[{"index":3,"value":[1]}],"ttl":"60s","head":{"logId":"l","sequence":"18446744073709551615"}}`: {
			Values: newPayload("null"), Interrupts: []*graphdv1.Interrupt{{Index: 3, Value: newPayload("[1]")}},
			Expiration: &graphdv1.Thread_Ttl{Ttl: durationpb.New(time.Minute)},
			Head:       &graphdv1.Cursor{LogId: "l", Sequence: 18446744073709551615},
		},
		`{"values":{"json":"{broken"}}`: {Values: newPayload("{broken")},
		`{"values":{"data":"AQI=","mediaType":"x/y"}}`: {Values: &graphdv1.Payload{
			Body: &graphdv1.Payload_Data{Data: []byte{1, 2}}, MediaType: "x/y",
		}},
	} {
		require.Equal(t, want, string(cli.Marshal(m)))
		require.True(t, json.Valid(cli.Indent(cli.Marshal(m))))
	}
}

// Apart from payloads the output is protojson, so that it can be read back.
func TestTheRestIsProtojson(t *testing.T) {
	run := &graphdv1.Run{
		RunId: "r\u2028\"", State: graphdv1.RunState_RUN_STATE_FAILED, Etag: "7", OpenInterruptIds: []string{"a"},
		Failure: &graphdv1.Failure{Attempt: 2, Details: map[string]string{"limit": "25"}},
	}
	want, err := protojson.Marshal(run)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(cli.Marshal(run)))
}

// Every verb that fits an argument formats it, and nothing of it is hidden.
func TestArgumentsAreFormattedThenMadeVisible(t *testing.T) {
	var out strings.Builder
	require.NoError(t, cli.WriteLine(&out, "%d of %03d, %.1f%%, %t, %s, %q, %v, %-4s|, %s", 1, int64(2), 33.333, true,
		"a\x1b", "b\u202e", []string{"c\u200b"}, "d", 1500*time.Millisecond))
	require.Equal(t, `1 of 002, 33.3%, true, a\u{1b}, "b\u202e", [c\u{200b}], d   |, 1.5s`+"\n", out.String())
}

func TestPrintedCommandsSurviveAShell(t *testing.T) {
	args := []string{
		"plain", "", "two words", `it's`, `{"a":"$HOME \"x\" \\ ` + "`id`" + `!"}`, "a=b", "new\nline", "*", "~", "退款", "#", ";",
	}
	out, err := exec.Command("sh", "-c", `printf '%s\001' `+cli.QuoteCommand(args...)).Output()
	require.NoError(t, err)
	require.Equal(t, args, strings.Split(strings.TrimSuffix(string(out), "\001"), "\001"))
	require.Equal(t, "graphd resume t1 --value true", cli.QuoteCommand("graphd", "resume", "t1", "--value", "true"))
}

func FuzzPrintedCommands(f *testing.F) {
	f.Add("it's", `{"a": 1}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		// No argument can hold the one; the other marks the ends below.
		held := strings.NewReplacer("\x00", "", "\x01", "")
		a, b = held.Replace(a), held.Replace(b)
		out, err := exec.Command("sh", "-c", `printf '%s\001' `+cli.QuoteCommand("-", a, b)).Output()
		require.NoError(t, err)
		require.Equal(t, "-\x01"+a+"\x01"+b+"\x01", string(out))
	})
}

func TestColoursOnlyWhereTheyCanBeSeen(t *testing.T) {
	for _, color := range []bool{false, true} {
		s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{
			openedEvent(), updateEvent(1, "a", `{"n":1}`), endEvent(stopped, 2, succeeded),
		}}}}
		c, out := newSession(t, s, "")
		c.HasColor = color
		require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
		require.Equal(t, color, strings.Contains(out.String(), "\x1b["), out.String())
	}
}
