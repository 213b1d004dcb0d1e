package transport_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

// fakeAssistants keeps what the test has set, and records changes.
type fakeAssistants struct {
	list    []runtime.Assistant
	created runtime.CreateAssistantRequest
	updated runtime.UpdateAssistantRequest
}

func (f *fakeAssistants) GetAssistant(_ context.Context, _, id string, _ int) (runtime.Assistant, error) {
	for _, a := range f.list {
		if a.ID == id {
			return a, nil
		}
	}
	return runtime.Assistant{}, runtime.NewAssistantNotFoundError(id)
}

func (f *fakeAssistants) ListAssistants(_ context.Context, q runtime.AssistantQuery) (list []runtime.Assistant, more bool, err error) {
	for _, a := range f.list {
		if q.After.ID == "" || a.ID > q.After.ID {
			list = append(list, a)
		}
	}
	return list[:min(q.Limit, len(list))], len(list) > q.Limit, nil
}

func (f *fakeAssistants) ListVersions(_ context.Context, q runtime.AssistantVersionQuery) (list []runtime.Assistant, more bool, err error) {
	for version := 5; version > 0; version-- {
		if q.Before == 0 || version < q.Before {
			list = append(list, runtime.Assistant{ID: "a", Graph: "g", Version: version})
		}
	}
	return list[:min(q.Limit, len(list))], len(list) > q.Limit, nil
}

func (f *fakeAssistants) CreateAssistant(_ context.Context, req runtime.CreateAssistantRequest) (runtime.Assistant, error) {
	f.created = req
	return req.Assistant, nil
}

func (f *fakeAssistants) UpdateAssistant(_ context.Context, req runtime.UpdateAssistantRequest) (runtime.Assistant, error) {
	f.updated = req
	if err := req.Admits("acme@g"); err != nil {
		return runtime.Assistant{}, err
	}
	return runtime.Assistant{ID: req.ID, Version: 2}, nil
}

func (f *fakeAssistants) ActivateVersion(_ context.Context, _, id string, version int, admits func(string) error) (runtime.Assistant, error) {
	return runtime.Assistant{ID: id, Version: version}, admits("acme@g")
}

func (f *fakeAssistants) DeleteAssistant(_ context.Context, _, _ string, _ uint64, admits func(string) error) error {
	return admits("acme@g")
}

func startAssistants(t *testing.T, kept *fakeAssistants) graphdv1.AssistantServiceClient {
	t.Helper()
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Assistants = kept })
	return graphdv1.NewAssistantServiceClient(c.conn)
}

func TestAssistantsAreChecked(t *testing.T) {
	c := startAssistants(t, &fakeAssistants{})
	for field, create := range map[string]*graphdv1.CreateAssistantRequest{
		"assistant.graph":        {},
		"assistant_id":           {AssistantId: "a b", Assistant: &graphdv1.Assistant{Graph: "g"}},
		"assistant.assistant_id": {AssistantId: "a", Assistant: &graphdv1.Assistant{Graph: "g", AssistantId: "b"}},
		"assistant":              {Assistant: &graphdv1.Assistant{Graph: "g", Version: 3}},
		"assistant.context":      {Assistant: &graphdv1.Assistant{Graph: "g", Context: newJSONPayload("[1]")}},
		"assistant.metadata":     {Assistant: &graphdv1.Assistant{Graph: "g", Metadata: map[string]string{"\x00name": "x"}}},
		"assistant.config":       {Assistant: &graphdv1.Assistant{Graph: "g", Config: newJSONPayload("1")}},
	} {
		_, err := c.CreateAssistant(t.Context(), create)
		info := requireErrorInfo(t, err)
		require.Equal(t, "INVALID_FIELD", info.GetReason())
		require.Equal(t, field, info.GetMetadata()["field"])
	}
	for field, update := range map[string]*graphdv1.UpdateAssistantRequest{
		"assistant.assistant_id": {Assistant: &graphdv1.Assistant{Name: "x"}},
		"update_mask":            {Assistant: &graphdv1.Assistant{AssistantId: "a"}},
		"assistant.graph":        {Assistant: &graphdv1.Assistant{AssistantId: "a"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"graph"}}},
		"assistant.etag":         {Assistant: &graphdv1.Assistant{AssistantId: "a", Name: "x", Etag: "none"}},
	} {
		_, err := c.UpdateAssistant(t.Context(), update)
		require.Equal(t, field, requireErrorInfo(t, err).GetMetadata()["field"])
	}
	_, err := c.UpdateAssistant(t.Context(), &graphdv1.UpdateAssistantRequest{
		Assistant: &graphdv1.Assistant{AssistantId: "a"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"version"}},
	})
	require.Equal(t, "update_mask", requireErrorInfo(t, err).GetMetadata()["field"])
	_, err = c.ActivateAssistantVersion(t.Context(), &graphdv1.ActivateAssistantVersionRequest{AssistantId: "a"})
	require.Equal(t, "version", requireErrorInfo(t, err).GetMetadata()["field"])
	_, err = c.GetAssistant(t.Context(), &graphdv1.GetAssistantRequest{AssistantId: "none"})
	require.Equal(t, "ASSISTANT_NOT_FOUND", requireErrorInfo(t, err).GetReason())
}

func TestAssistantsAreCarriedAsTheyCame(t *testing.T) {
	kept := &fakeAssistants{}
	c := startAssistants(t, kept)
	made, err := c.CreateAssistant(t.Context(), &graphdv1.CreateAssistantRequest{
		AssistantId: "a", Assistant: &graphdv1.Assistant{Graph: "g", Name: "n", Context: newJSONPayload(`{"b": 1.0, "a": 9007199254740993}`)},
	})
	require.NoError(t, err)
	require.Equal(t, `{"b": 1.0, "a": 9007199254740993}`, made.GetContext().GetJson())
	require.Equal(t, "default", kept.created.Assistant.Tenant)
	_, err = c.UpdateAssistant(t.Context(), &graphdv1.UpdateAssistantRequest{
		Assistant:  &graphdv1.Assistant{AssistantId: "a", Etag: "7", Name: "left alone", Metadata: map[string]string{"kept": "1"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"description", "context", "metadata.kept", "metadata.gone"}},
	})
	require.NoError(t, err)
	require.Nil(t, kept.updated.Name, "the mask does not name it")
	require.Empty(t, *kept.updated.Context, "it is removed")
	require.Equal(t, map[string]string{"kept": "1"}, kept.updated.Metadata)
	require.Equal(t, []string{"gone"}, kept.updated.DropKeys)
	require.EqualValues(t, 7, kept.updated.Etag)
}

func TestPagesOfAssistants(t *testing.T) {
	kept := &fakeAssistants{}
	for i := range 5 {
		kept.list = append(kept.list, runtime.Assistant{ID: fmt.Sprint("a", i), Graph: "g", Created: time.Unix(int64(i), 0)})
	}
	c := startAssistants(t, kept)
	var ids []string
	request := &graphdv1.ListAssistantsRequest{PageSize: 2}
	for {
		page, err := c.ListAssistants(t.Context(), request)
		require.NoError(t, err)
		for _, a := range page.GetAssistants() {
			ids = append(ids, a.GetAssistantId())
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
		_, err = c.ListAssistants(t.Context(), &graphdv1.ListAssistantsRequest{Graph: "other", PageToken: request.GetPageToken()})
		require.Equal(t, "INVALID_PAGE_TOKEN", requireErrorInfo(t, err).GetReason())
	}
	require.Equal(t, []string{"a0", "a1", "a2", "a3", "a4"}, ids)

	var versions []int32
	list := &graphdv1.ListAssistantVersionsRequest{AssistantId: "a0", PageSize: 2}
	for {
		page, err := c.ListAssistantVersions(t.Context(), list)
		require.NoError(t, err)
		for _, a := range page.GetVersions() {
			versions = append(versions, a.GetVersion())
		}
		if list.PageToken = page.GetNextPageToken(); list.PageToken == "" {
			break
		}
	}
	require.Equal(t, []int32{5, 4, 3, 2, 1}, versions)
}

func TestChangesOfAssistantsAreAuditedWithTheirGraph(t *testing.T) {
	a := &fakeAuditor{}
	c := graphdv1.NewAssistantServiceClient(startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.Assistants, o.Auditor, o.Authenticator = &fakeAssistants{}, a, oneCaller{}
	}).conn)
	ctx := withToken(t.Context())
	_, err := c.DeleteAssistant(ctx, &graphdv1.DeleteAssistantRequest{AssistantId: "a"})
	require.NoError(t, err)
	require.Equal(t, "g", a.takeOne(t).Graph)
	_, err = c.ActivateAssistantVersion(ctx, &graphdv1.ActivateAssistantVersionRequest{AssistantId: "a", Version: 1})
	require.NoError(t, err)
	require.Equal(t, "g", a.takeOne(t).Graph)
	_, err = c.UpdateAssistant(ctx, &graphdv1.UpdateAssistantRequest{Assistant: &graphdv1.Assistant{AssistantId: "a", Name: "x"}})
	require.NoError(t, err)
	require.Equal(t, "g", a.takeOne(t).Graph)
}
