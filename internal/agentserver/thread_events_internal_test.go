package agentserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func TestNumbersOfEvents(t *testing.T) {
	before := uint64(0)
	for _, id := range []eventID{
		{sequence: 1, number: 0},
		{sequence: 1, number: 1},
		{sequence: 1, number: mostEventsOfOne},
		{sequence: 2, number: 0},
		{sequence: 1<<33 - 1, number: mostEventsOfOne},
	} {
		number := sequenceNumber(id)
		require.Greater(t, number, before)
		require.Less(t, number, uint64(1)<<53, "JavaScript counts no further")
		id.log = "log"
		require.Equal(t, id, eventOfNumber("log", number))
		before = number
	}
	require.Equal(t, sequenceNumber(eventID{sequence: 1, number: mostEventsOfOne}), sequenceNumber(eventID{sequence: 1, number: mostEventsOfOne + 5}),
		"it never reaches the next event of the log")
}

func TestWantedEvents(t *testing.T) {
	one := 1
	for _, c := range []struct {
		about     string
		request   eventRequest
		channel   string
		namespace []string
		want      bool
	}{
		{"its channel", eventRequest{Channels: []string{"values"}}, "values", nil, true},
		{"another channel", eventRequest{Channels: []string{"values"}}, "updates", nil, false},
		{"a custom event of a name", eventRequest{Channels: []string{"custom:a"}}, "custom:a", nil, true},
		{"of another name", eventRequest{Channels: []string{"custom:a"}}, "custom:b", nil, false},
		{"of any name", eventRequest{Channels: []string{"custom"}}, "custom:b", nil, true},
		{"without a name", eventRequest{Channels: []string{"custom:a"}}, "custom", nil, false},
		{"a node's subgraphs", eventRequest{Channels: []string{"values"}, Namespaces: [][]string{{"inner"}}}, "values", []string{"inner:1"}, true},
		{"one of them", eventRequest{Channels: []string{"values"}, Namespaces: [][]string{{"inner:2"}}}, "values", []string{"inner:1"}, false},
		{"the root beside it", eventRequest{Channels: []string{"values"}, Namespaces: [][]string{{"inner"}}}, "values", nil, false},
		{"not too deep", eventRequest{Channels: []string{"values"}, Namespaces: [][]string{{}}, Depth: &one}, "values", []string{"a:1"}, true},
		{"too deep", eventRequest{Channels: []string{"values"}, Namespaces: [][]string{{}}, Depth: &one}, "values", []string{"a:1", "b:2"}, false},
	} {
		require.Equal(t, c.want, c.request.includesEvent(c.channel, c.namespace), c.about)
	}
}

// Pieces of a message become blocks: a block of another kind, or another call of a tool, begins the
// next one. The end of the task ends them.
func TestMessageBlocks(t *testing.T) {
	translator := newEventTranslator(&call{}, &eventRequest{Channels: []string{"messages"}}, "g")
	translator.held = 1 << 20
	piece := func(text string) *graphdv1.Event {
		return &graphdv1.Event{TaskId: "t1", Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{
			Value: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: text}},
		}}}
	}
	var shown []string
	for _, event := range []*graphdv1.Event{
		piece(`{"id":"m1","type":"AIMessageChunk","content":"Hel"}`),
		piece(`{"id":"m1","type":"AIMessageChunk","content":"lo"}`),
		piece(`{"id":"m1","type":"AIMessageChunk","content":[{"type":"reasoning","reasoning":"hm"}]}`),
		piece(`{"id":"m1","type":"AIMessageChunk","content":"","tool_call_chunks":[{"id":"c1","name":"send","args":"{\"to\":"}]}`),
		piece(`{"id":"m1","type":"AIMessageChunk","content":"","tool_call_chunks":[{"args":"1}"}]}`),
		piece(`{"id":"m1","type":"AIMessageChunk","content":"","tool_call_chunks":[{"id":"c2","name":"send","args":"{"}]}`),
		piece(`{"type":"AIMessageChunk","content":"of no message"}`),
		piece(`"no message"`),
		{TaskId: "t2", Kind: &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{}}},
		{TaskId: "t1", Kind: &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{}}},
	} {
		list, err := translator.translateEvent(event)
		require.NoError(t, err)
		for _, one := range list {
			if one.isWanted {
				text, err := json.Marshal(one.data)
				require.NoError(t, err)
				shown = append(shown, string(text))
			}
		}
	}
	require.Equal(t, []string{
		`{"event":"message-start","id":"m1","role":"ai"}`,
		`{"content":{"text":"","type":"text"},"event":"content-block-start","index":0}`,
		`{"delta":{"text":"Hel","type":"text-delta"},"event":"content-block-delta","index":0}`,
		`{"delta":{"text":"lo","type":"text-delta"},"event":"content-block-delta","index":0}`,
		`{"content":{"text":"Hello","type":"text"},"event":"content-block-finish","index":0}`,
		`{"content":{"reasoning":"","type":"reasoning"},"event":"content-block-start","index":1}`,
		`{"delta":{"reasoning":"hm","type":"reasoning-delta"},"event":"content-block-delta","index":1}`,
		`{"content":{"reasoning":"hm","type":"reasoning"},"event":"content-block-finish","index":1}`,
		`{"content":{"args":"","id":"c1","name":"send","type":"tool_call_chunk"},"event":"content-block-start","index":2}`,
		`{"delta":{"args":"{\"to\":","type":"tool-call-delta"},"event":"content-block-delta","index":2}`,
		`{"delta":{"args":"1}","type":"tool-call-delta"},"event":"content-block-delta","index":2}`,
		`{"content":{"args":{"to":1},"id":"c1","name":"send","type":"tool_call"},"event":"content-block-finish","index":2}`,
		`{"content":{"args":"","id":"c2","name":"send","type":"tool_call_chunk"},"event":"content-block-start","index":3}`,
		`{"delta":{"args":"{","type":"tool-call-delta"},"event":"content-block-delta","index":3}`,
		`{"content":{"args":"{","error":null,"id":"c2","name":"send","type":"invalid_tool_call"},"event":"content-block-finish","index":3}`,
		`{"event":"message-finish"}`,
	}, shown)
	require.Empty(t, translator.messages.byTask)
	require.Zero(t, translator.messages.size)
}
