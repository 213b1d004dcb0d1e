package agentserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func TestDefaultAssistantIsThatOfLangGraphServer(t *testing.T) {
	require.Equal(t, "fe096781-5601-53d2-b2f6-0d3403f7e9ca", defaultAssistant("agent"))
}

func TestContainsJSON(t *testing.T) {
	for part, want := range map[string]bool{
		`{}`: true, `{"a":{}}`: true, `{"a":{"b":[3]}}`: true, `{"a":{"b":[3,1]}}`: true, `{"a":{"b":[{"c":1}]}}`: true,
		`{"a":{"b":[4]}}`: false, `{"a":1}`: false, `{"x":null}`: false, `[1]`: false, `{"a":{"b":[{"c":2}]}}`: false,
	} {
		require.Equal(t, want, containsJSON(json.RawMessage(`{"a":{"b":[1,2,3,{"c":1,"d":2}]}}`), json.RawMessage(part)), part)
	}
}

func TestLabelsKeepEveryValue(t *testing.T) {
	given := metadata{}
	require.NoError(t, json.Unmarshal([]byte(`{"text":"1","number":1,"big":9007199254740993,"deep":{"a":[3]},"none":null,"yes":true,"quote":"\"x\""}`), &given))
	labels, err := given.toLabels()
	require.NoError(t, err)
	require.Equal(t, "1", labels["text"])
	require.Equal(t, "big,deep,none,number,yes", labels[typedKeys])
	require.Equal(t, given, readLabels(labels))
}

func TestLabelsOfTheServerAreRefused(t *testing.T) {
	for _, key := range []string{typedKeys, legPrefix + "0", "a,b"} {
		_, err := metadata{key: json.RawMessage("1")}.toLabels()
		require.ErrorContains(t, err, "metadata", key)
	}
}

func TestAddQuestions(t *testing.T) {
	asked := []shownQuestion{{ID: "q", Value: json.RawMessage(`1`)}}
	for values, want := range map[string]string{
		`{"a":1.0}`: `{"a":1.0,"__interrupt__":[{"id":"q","value":1}]}`,
		"{ \n}":     `{"__interrupt__":[{"id":"q","value":1}]}`,
		`null`:      `{"__interrupt__":[{"id":"q","value":1}]}`,
	} {
		got, err := addQuestions(json.RawMessage(values), asked)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func TestLegsOfARun(t *testing.T) {
	of := &graphdv1.Run{RunId: "r", Metadata: map[string]string{"user": "u"}}
	first := readLegs(of)
	require.Len(t, first, 1)
	require.Equal(t, "r", first[0].ID, "a run that another API has begun")
	for n := 1; n < 100; n++ {
		l := &leg{ID: "l", Number: n, After: uint64(10 * n)}
		key, text, err := l.toLabel()
		require.NoError(t, err)
		of.Metadata[key] = text
	}
	legs := readLegs(of)
	require.Len(t, legs, maxLegs)
	require.Equal(t, 60, legs[0].Number)
	require.Equal(t, uint64(610), legs[0].next)
	require.Zero(t, legs[maxLegs-1].next)
}

func TestEventIDs(t *testing.T) {
	id := eventID{log: "dde00b6b", sequence: 7, mark: 3, number: 2}
	parsed, err := parseEventID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, parsed)
	for _, wrong := range []string{"7", "a-b-c-d", "-1-2-3-4", "l-1-1--1", "l-1-99999999999-1", "l-1-1-1-1"} {
		_, err := parseEventID(wrong)
		require.Error(t, err, wrong)
	}
}

func TestNamespaces(t *testing.T) {
	path := []string{"inner:f87e19cb2bc911218a83710a40a5907d", "deep"}
	shown := formatNamespace(path)
	require.Equal(t, "inner:f87e19cb-2bc9-1121-8a83-710a40a5907d|deep", shown)
	require.Equal(t, path, parseNamespace(shown))
}

func TestMessagesGrow(t *testing.T) {
	log := newMessageLog()
	add := func(piece string) string {
		head, ok := readMessage(json.RawMessage(piece))
		require.True(t, ok)
		whole, _ := log.addPiece("task", head, json.RawMessage(piece))
		text, err := encodeJSON(whole)
		require.NoError(t, err)
		return string(text)
	}
	add(`{"id":"m","type":"AIMessageChunk","content":"Hel"}`)
	require.JSONEq(t, `{"id":"m","type":"AIMessageChunk","content":"Hello"}`, add(`{"id":"m","type":"AIMessageChunk","content":"lo"}`))
	require.Positive(t, log.size)
	log.forgetTask("task")
	require.Zero(t, log.size)
	require.JSONEq(t, `{"id":"m","type":"AIMessageChunk","content":"again"}`, add(`{"id":"m","type":"AIMessageChunk","content":"again"}`))
}
