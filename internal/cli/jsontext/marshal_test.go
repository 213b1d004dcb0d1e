package jsontext_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

func newPayload(text string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}}
}

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
		require.Equal(t, want, string(jsontext.MarshalMessage(m)))
		require.True(t, json.Valid(jsontext.IndentText(jsontext.MarshalMessage(m))))
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
	require.JSONEq(t, string(want), string(jsontext.MarshalMessage(run)))
}
