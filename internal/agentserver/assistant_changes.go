package agentserver

import (
	"encoding/json"
	"maps"
	"net/http"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// assistantWriting makes or changes an assistant.
type assistantWriting struct {
	ID          string          `json:"assistant_id"`
	Graph       *string         `json:"graph_id"`
	Name        *string         `json:"name"`
	Description *string         `json:"description"`
	Config      json.RawMessage `json:"config"`
	Context     json.RawMessage `json:"context"`
	Metadata    metadata        `json:"metadata"`
	IfExists    string          `json:"if_exists"`
}

// unnamed is the name of an assistant that was made without one.
const unnamed = "Untitled"

// toAssistant returns what is to be written, and the paths of it.
func (w *assistantWriting) toAssistant() (*graphdv1.Assistant, []string, error) {
	labels, err := w.Metadata.toLabels()
	if err != nil {
		return nil, nil, err
	}
	a := &graphdv1.Assistant{Metadata: labels}
	var paths []string
	for _, text := range []struct {
		path  string
		given *string
		to    *string
	}{{"graph", w.Graph, &a.Graph}, {"name", w.Name, &a.Name}, {"description", w.Description, &a.Description}} {
		if text.given != nil {
			*text.to, paths = *text.given, append(paths, text.path)
		}
	}
	for _, object := range []struct {
		path  string
		given json.RawMessage
		to    **graphdv1.Payload
	}{{"config", w.Config, &a.Config}, {"context", w.Context, &a.Context}} {
		switch {
		case isAbsent(object.given):
		case !isObject(object.given):
			return nil, nil, invalidField(object.path, "is no object")
		default:
			*object.to, paths = newPayload(object.given), append(paths, object.path)
		}
	}
	if err := w.checkConfig(); err != nil {
		return nil, nil, err
	}
	if len(w.Metadata) > 0 {
		paths = append(paths, "metadata")
	}
	return a, paths, nil
}

// checkConfig refuses a config that no run could use.
func (w *assistantWriting) checkConfig() error {
	if isAbsent(w.Config) {
		return nil
	}
	if err := json.Unmarshal(w.Config, new(runConfig)); err != nil {
		return invalidField("config", "can't be used by runs: %s", err)
	}
	return nil
}

// createAssistant answers POST /assistants.
func createAssistant(c *call) error {
	var given assistantWriting
	if err := c.decodeBody(&given); err != nil {
		return err
	}
	switch {
	case given.Graph == nil || *given.Graph == "":
		return invalidField("graph_id", "is missing: want the name of a graph")
	case given.IfExists != "" && given.IfExists != "raise" && given.IfExists != "do_nothing":
		return invalidField("if_exists", "is %.100q: want raise or do_nothing", given.IfExists)
	}
	id := ""
	var err error
	if given.ID != "" {
		if id, err = parseID("assistant_id", given.ID); err != nil {
			return err
		}
	}
	wanted, _, err := given.toAssistant()
	if err != nil {
		return err
	}
	if given.Name == nil {
		wanted.Name = unnamed
	}
	if id != "" && isNameBased(id) {
		if taken, err := c.findDefaultAssistant(id); err != nil || taken != nil {
			return c.answerTaken(taken, &given, err)
		}
	}
	made, err := c.assistants.CreateAssistant(c.ctx, &graphdv1.CreateAssistantRequest{AssistantId: id, Assistant: wanted})
	if reasonOf(err) == "ASSISTANT_EXISTS" && given.IfExists == "do_nothing" {
		made, err = c.assistants.GetAssistant(c.ctx, &graphdv1.GetAssistantRequest{AssistantId: id})
	}
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, newAssistant(made))
}

// answerTaken answers the creation of an assistant with the id of a default one.
func (c *call) answerTaken(taken *chosenAssistant, given *assistantWriting, err error) error {
	if err != nil {
		return err
	}
	if given.IfExists != "do_nothing" {
		return newError(http.StatusConflict, "ASSISTANT_EXISTS", "it is the id of the default assistant of a graph").ofField("assistant_id")
	}
	shown, err := c.readDefaultAssistant(taken.graph)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, shown)
}

// keptInPath returns the assistant in the path, which must be one that is kept.
func (c *call) keptInPath() (*graphdv1.Assistant, error) {
	found, err := c.findAssistant(c.r.PathValue("assistant"))
	if err != nil {
		return nil, err
	}
	if found.kept != nil {
		return found.kept, nil
	}
	if _, err := c.readDefaultAssistant(found.graph); err != nil {
		return nil, err
	}
	return nil, newError(http.StatusConflict, "DEFAULT_ASSISTANT", "the default assistant of a graph can't be changed: POST /assistants makes another one of the graph")
}

// updateAssistant answers PATCH /assistants/{id}. Metadata is added to what there is.
func updateAssistant(c *call) error {
	var given assistantWriting
	if err := c.decodeBody(&given); err != nil {
		return err
	}
	for {
		kept, err := c.keptInPath()
		if err != nil {
			return err
		}
		changed, err := given.changeAssistant(c, kept)
		switch {
		case reasonOf(err) == "ETAG_MISMATCH": // another call has changed it meanwhile
		case err != nil:
			return err
		default:
			return c.writeJSON(http.StatusOK, newAssistant(changed))
		}
	}
}

// changeAssistant changes an assistant. Metadata is merged here, because one label says which others
// are no texts. Errors: ETAG_MISMATCH when the assistant was changed since it was read.
func (w *assistantWriting) changeAssistant(c *call, kept *graphdv1.Assistant) (*graphdv1.Assistant, error) {
	merged, etag := *w, ""
	if len(w.Metadata) > 0 {
		merged.Metadata, etag = readLabels(kept.GetMetadata()), kept.GetEtag()
		maps.Copy(merged.Metadata, w.Metadata)
	}
	wanted, paths, err := merged.toAssistant()
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, invalidField("body", "changes nothing: want graph_id, name, description, config, context or metadata")
	}
	wanted.AssistantId, wanted.Etag = kept.GetAssistantId(), etag
	return c.assistants.UpdateAssistant(c.ctx, &graphdv1.UpdateAssistantRequest{Assistant: wanted, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
}

// deleteAssistant answers DELETE /assistants/{id}.
func deleteAssistant(c *call) error {
	withThreads, err := c.queryFlag("delete_threads")
	if err != nil {
		return err
	}
	kept, err := c.keptInPath()
	if err != nil {
		return err
	}
	if withThreads {
		if err := c.deleteThreadsOf(kept.GetAssistantId()); err != nil {
			return err
		}
	}
	if _, err := c.assistants.DeleteAssistant(c.ctx, &graphdv1.DeleteAssistantRequest{AssistantId: kept.GetAssistantId()}); err != nil {
		return err
	}
	return c.writeNothing()
}

// deleteThreadsOf deletes the threads on which an assistant ran last, a page at a time. One that is
// refused ends it.
func (c *call) deleteThreadsOf(assistant string) error {
	filter := onlyUUIDs + " AND metadata." + quoteKey(assistantLabel) + " = " + quoteFilter(assistant)
	for {
		page, err := c.threads.ListThreads(c.ctx, &graphdv1.ListThreadsRequest{PageSize: largestBatch, Filter: filter})
		if err != nil || len(page.GetThreads()) == 0 {
			return err
		}
		request := &graphdv1.DeleteThreadsRequest{Force: true}
		for _, found := range page.GetThreads() {
			request.ThreadIds = append(request.ThreadIds, found.GetThreadId())
		}
		deleted, err := c.threads.DeleteThreads(c.ctx, request)
		if err != nil {
			return err
		}
		for _, refused := range deleted.GetFailures() {
			if refused.GetReason() != "THREAD_NOT_FOUND" {
				return newError(http.StatusConflict, refused.GetReason(), refused.GetMessage())
			}
		}
	}
}

// chosenVersion names a version of an assistant.
type chosenVersion struct {
	Version int32 `json:"version"`
}

// activateAssistantVersion answers POST /assistants/{id}/latest.
func activateAssistantVersion(c *call) error {
	var given chosenVersion
	if err := c.decodeBody(&given); err != nil {
		return err
	}
	if given.Version < 1 {
		return invalidField("version", "is %d: want the number of a version, from 1", given.Version)
	}
	kept, err := c.keptInPath()
	if err != nil {
		return err
	}
	active, err := c.assistants.ActivateAssistantVersion(c.ctx, &graphdv1.ActivateAssistantVersionRequest{AssistantId: kept.GetAssistantId(), Version: given.Version})
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, newAssistant(active))
}

// versionSearch asks for versions of an assistant.
type versionSearch struct {
	Metadata metadata `json:"metadata"`
	Limit    *int     `json:"limit"`
	Offset   int      `json:"offset"`
}

// listAssistantVersions answers POST /assistants/{id}/versions. A default assistant has one version.
func listAssistantVersions(c *call) error {
	var search versionSearch
	if err := c.decodeBody(&search); err != nil {
		return err
	}
	limit, err := pageSize(search.Limit)
	if err == nil && search.Offset < 0 {
		err = invalidField("offset", "is %d: want 0 or more", search.Offset)
	}
	if err != nil {
		return err
	}
	versions, err := c.readVersions()
	if err != nil {
		return err
	}
	wanted := assistantSearch{Metadata: search.Metadata}
	list := []assistant{}
	for i := range versions {
		if wanted.matches(&versions[i]) {
			list = append(list, versions[i])
		}
	}
	from := min(search.Offset, len(list))
	return c.writeJSON(http.StatusOK, list[from:min(from+limit, len(list))])
}

// readVersions returns the versions of the assistant in the path, the newest first.
func (c *call) readVersions() (list []assistant, err error) {
	found, err := c.findAssistant(c.r.PathValue("assistant"))
	if err != nil {
		return nil, err
	}
	if found.kept == nil {
		only, err := c.readDefaultAssistant(found.graph)
		return []assistant{only}, err
	}
	for token := ""; ; {
		page, err := c.assistants.ListAssistantVersions(c.ctx, &graphdv1.ListAssistantVersionsRequest{AssistantId: found.id(), PageToken: token})
		if err != nil {
			return nil, err
		}
		for _, version := range page.GetVersions() {
			a := newAssistant(version)
			if err := c.holdGathered(len(a.Config) + len(a.Context)); err != nil {
				return nil, err
			}
			list = append(list, a)
		}
		if token = page.GetNextPageToken(); token == "" {
			return list, nil
		}
	}
}
