package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// assistantCalls are the calls of one caller that concern one assistant.
type assistantCalls struct {
	graphdv1.AssistantServiceClient
	ctx context.Context //nolint:containedctx // that of the caller
}

// callAssistants returns the calls of a caller of an accessServer.
func (s *accessServer) callAssistants(t *testing.T, caller string) *assistantCalls {
	t.Helper()
	return &assistantCalls{graphdv1.NewAssistantServiceClient(s.conn), s.as(t.Context(), caller)}
}

// contextOf returns the context of an assistant of a graph.
func contextOf(graph string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: `{"of": "` + graph + `"}`}}
}

// create makes an assistant of a graph.
func (c *assistantCalls) create(id, graph string) error {
	_, err := c.CreateAssistant(c.ctx, &graphdv1.CreateAssistantRequest{
		AssistantId: id, RequestId: "create-" + id, Assistant: &graphdv1.Assistant{Graph: graph, Context: contextOf(graph)},
	})
	return err
}

// update changes an assistant. Without paths the fields that are set are changed.
func (c *assistantCalls) update(a *graphdv1.Assistant, paths ...string) (*graphdv1.Assistant, error) {
	return c.UpdateAssistant(c.ctx, &graphdv1.UpdateAssistantRequest{Assistant: a, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
}

// move gives an assistant another graph.
func (c *assistantCalls) move(id, graph string) error {
	return errOf(c.update(&graphdv1.Assistant{AssistantId: id, Graph: graph, Context: contextOf(graph)}))
}

func (c *assistantCalls) get(id string, version int32) (*graphdv1.Assistant, error) {
	return c.GetAssistant(c.ctx, &graphdv1.GetAssistantRequest{AssistantId: id, Version: version})
}

func (c *assistantCalls) activate(id string, version int32) error {
	return errOf(c.ActivateAssistantVersion(c.ctx, &graphdv1.ActivateAssistantVersionRequest{AssistantId: id, Version: version}))
}

func (c *assistantCalls) remove(id, etag string) error {
	return errOf(c.DeleteAssistant(c.ctx, &graphdv1.DeleteAssistantRequest{AssistantId: id, Etag: etag}))
}

// listVersions lists the numbers of the versions that the caller gets, over pages of two.
func (c *assistantCalls) listVersions(t *testing.T, id string) (numbers []int32) {
	t.Helper()
	for token := ""; ; {
		page, err := c.ListAssistantVersions(c.ctx, &graphdv1.ListAssistantVersionsRequest{AssistantId: id, PageSize: 2, PageToken: token})
		require.NoError(t, err)
		for _, version := range page.GetVersions() {
			numbers = append(numbers, version.GetVersion())
		}
		if token = page.GetNextPageToken(); token == "" {
			return numbers
		}
		require.Len(t, page.GetVersions(), 2, "a page that ends early tells of others")
	}
}

// requireUnknown requires that a refusal says no more than that of an id that no assistant has.
func requireUnknown(t *testing.T, id string, err error) {
	t.Helper()
	require.Equal(t, "ASSISTANT_NOT_FOUND", reasonOfRefusal(err))
	require.ErrorContains(t, err, `there is no assistant "`+id+`"`)
	require.Equal(t, map[string]string{"assistantId": id}, metadataOf(err))
}

// A caller gets and changes the assistants of its graphs. Those of another graph do not exist for it,
// whatever it asks for.
func TestAssistantsOfOtherGraphsDoNotExist(t *testing.T) {
	s := startAccessServer(t)
	root := s.callAssistants(t, "root")
	require.NoError(t, root.create("seen", "open"))
	require.NoError(t, root.create("unseen", "hidden"))
	for _, id := range []string{"unseen", "none"} {
		for _, caller := range []string{"viewer", "author", "operator"} {
			c := s.callAssistants(t, caller)
			for _, version := range []int32{0, 1, 9} {
				requireUnknown(t, id, errOf(c.get(id, version)))
			}
			requireUnknown(t, id, errOf(c.ListAssistantVersions(c.ctx, &graphdv1.ListAssistantVersionsRequest{AssistantId: id})))
			list, err := c.ListAssistants(c.ctx, &graphdv1.ListAssistantsRequest{PageSize: 1})
			require.NoError(t, err)
			require.Len(t, list.GetAssistants(), 1)
			require.Equal(t, "seen", list.GetAssistants()[0].GetAssistantId())
			require.Empty(t, list.GetNextPageToken())
			list, err = c.ListAssistants(c.ctx, &graphdv1.ListAssistantsRequest{Graph: "hidden"})
			require.NoError(t, err)
			require.Empty(t, list.GetAssistants())
			if caller == "viewer" {
				continue
			}
			requireUnknown(t, id, errOf(c.update(&graphdv1.Assistant{AssistantId: id, Name: "x"})))
			requireUnknown(t, id, errOf(c.update(&graphdv1.Assistant{AssistantId: id, Name: "x", Etag: "77"}, "name")))
			requireUnknown(t, id, c.move(id, "open"))
			requireUnknown(t, id, c.move(id, "nowhere"))
			for _, version := range []int32{1, 9} {
				requireUnknown(t, id, c.activate(id, version))
			}
			requireUnknown(t, id, c.remove(id, ""))
			requireUnknown(t, id, c.remove(id, "77"))
		}
	}
	kept, err := root.get("unseen", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, kept.GetVersion())
}

// An assistant and each of its versions are seen and changed by their own graphs.
func TestAnAssistantChangesWithinTheGraphsOfItsCaller(t *testing.T) {
	s := startAccessServer(t)
	root, viewer := s.callAssistants(t, "root"), s.callAssistants(t, "viewer")
	for _, caller := range []string{"author", "operator"} {
		c := s.callAssistants(t, caller)
		require.Equal(t, "GRAPH_NOT_FOUND", reasonOfRefusal(c.create(caller, "hidden")))
		require.NoError(t, c.create(caller, "open"))
		require.NoError(t, c.move(caller, "asking"), "both graphs are its own")
		require.Equal(t, "ACCESS_DENIED", reasonOfRefusal(c.move(caller, "hidden")))
		require.NoError(t, root.move(caller, "hidden"))
		requireUnknown(t, caller, errOf(c.get(caller, 1)))
		requireUnknown(t, caller, c.create(caller, "open"))
		require.NoError(t, root.move(caller, "open"))

		for _, reader := range []*assistantCalls{c, viewer} {
			require.Equal(t, []int32{4, 2, 1}, reader.listVersions(t, caller), "the third is of a graph that the caller does not see")
			requireUnknown(t, caller, errOf(reader.get(caller, 3)))
			requireVersion(t, reader, caller, "asking", 2)
		}
		requireUnknown(t, caller, c.activate(caller, 3))
		require.NoError(t, c.activate(caller, 2))
		require.NoError(t, root.activate(caller, 3))
		requireUnknown(t, caller, c.activate(caller, 2))
		require.Equal(t, []int32{4, 3, 2, 1}, root.listVersions(t, caller))
		require.NoError(t, root.activate(caller, 2))
		for _, change := range []func(*assistantCalls) error{
			func(c *assistantCalls) error { return c.move(caller, "open") },
			func(c *assistantCalls) error { return c.activate(caller, 1) },
			func(c *assistantCalls) error { return c.remove(caller, "") },
		} {
			require.Equal(t, "ACCESS_DENIED", reasonOfRefusal(change(viewer)))
			require.NoError(t, change(c))
		}
		requireUnknown(t, caller, errOf(root.get(caller, 0)))
	}
}

// requireVersion requires that a caller reads a version, which is of a graph.
func requireVersion(t *testing.T, c *assistantCalls, id, graph string, version int32) {
	t.Helper()
	found, err := c.get(id, version)
	require.NoError(t, err)
	require.Equal(t, graph, found.GetGraph())
	require.Equal(t, contextOf(graph).GetJson(), found.GetContext().GetJson())
}
