package wire

import (
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// AssistantToProto converts a version of an assistant.
func AssistantToProto(a *runtime.Assistant) *graphdv1.Assistant {
	return &graphdv1.Assistant{
		AssistantId: a.ID, Graph: tenant.ClientName(a.Graph), Name: a.Name, Description: a.Description,
		Context: JSONToProto(a.Context), Config: JSONToProto(a.Config), Metadata: a.Metadata, Version: int32(a.Version),
		CreateTime: TimeToProto(a.Created), UpdateTime: TimeToProto(a.Updated), Etag: formatEtag(a.Revision),
	}
}

// NewAssistantFromProto converts a request to make an assistant.
func NewAssistantFromProto(v *Validator, req *graphdv1.CreateAssistantRequest) runtime.CreateAssistantRequest {
	a := req.GetAssistant()
	v.RequireSet("assistant.graph", a.GetGraph() != "")
	if a.GetAssistantId() != "" && a.GetAssistantId() != req.GetAssistantId() {
		v.AddViolation("assistant.assistant_id", "differs from assistant_id; set assistant_id alone")
	}
	if a.GetEtag() != "" || a.GetVersion() != 0 || a.GetCreateTime() != nil || a.GetUpdateTime() != nil {
		v.AddViolation("assistant", "has a version, a time or an etag, which the server sets; leave them unset")
	}
	return runtime.CreateAssistantRequest{
		Assistant: runtime.Assistant{
			Tenant: v.Tenant(), ID: v.CheckOptionalID("assistant_id", req.GetAssistantId()),
			Graph: v.CheckGraphName("assistant.graph", a.GetGraph()), Name: v.CheckText("assistant.name", a.GetName()),
			Description: v.CheckText("assistant.description", a.GetDescription()), Context: v.convertObject("assistant.context", a.GetContext()),
			Config: v.convertObject("assistant.config", a.GetConfig()), Metadata: v.checkAssistantLabels(a.GetMetadata()),
		},
		RequestID: v.CheckOptionalID("request_id", req.GetRequestId()),
	}
}

// checkAssistantLabels checks labels. Keys that begin with NUL are those of the server.
func (v *Validator) checkAssistantLabels(labels map[string]string) map[string]string {
	for key := range labels {
		if strings.HasPrefix(key, "\x00") {
			v.AddViolation("assistant.metadata", "has a key that begins with NUL, which the server keeps for itself")
		}
	}
	return v.CheckLabels("assistant.metadata", labels)
}

// convertObject checks a payload that is a JSON object, and returns its text; "" when unset.
func (v *Validator) convertObject(field string, p *graphdv1.Payload) payload.JSON {
	text := v.ConvertPayload(field, p)
	if text != "" && !strings.HasPrefix(strings.TrimLeft(string(text), " \t\r\n"), "{") {
		v.AddViolation(field, "is no JSON object")
	}
	return text
}

// Paths of an update mask for assistants, beside metadata.
const (
	maskGraph       = "graph"
	maskName        = "name"
	maskDescription = "description"
	maskContext     = "context"
	maskConfig      = "config"
)

// AssistantChangeFromProto converts a change of an assistant. It ignores fields that the mask does
// not name, so that a client may send back an assistant that it read.
func AssistantChangeFromProto(v *Validator, req *graphdv1.UpdateAssistantRequest) runtime.UpdateAssistantRequest {
	a := req.GetAssistant()
	c := runtime.UpdateAssistantRequest{
		Tenant: v.Tenant(), ID: v.CheckID("assistant.assistant_id", a.GetAssistantId()), Etag: v.ParseEtag("assistant.etag", a.GetEtag()),
	}
	paths := assistantMaskPaths(req)
	if len(paths) == 0 {
		v.AddViolation("update_mask", "is empty and assistant sets nothing that can be changed: graph, name, description, context, config, metadata")
	}
	labels := v.checkAssistantLabels(a.GetMetadata())
	for _, path := range paths {
		key, isLabel := strings.CutPrefix(path, maskMetadata+".")
		switch {
		case path == maskGraph:
			v.RequireSet("assistant.graph", a.GetGraph() != "")
			c.Graph = new(v.CheckGraphName("assistant.graph", a.GetGraph()))
		case path == maskName:
			c.Name = new(v.CheckText("assistant.name", a.GetName()))
		case path == maskDescription:
			c.Description = new(v.CheckText("assistant.description", a.GetDescription()))
		case path == maskContext:
			c.Context = new(v.convertObject("assistant.context", a.GetContext()))
		case path == maskConfig:
			c.Config = new(v.convertObject("assistant.config", a.GetConfig()))
		case path == maskMetadata:
			c.Metadata, c.ReplaceMetadata = labels, true
		case isLabel && key != "":
			setAssistantLabel(&c, key, labels)
		default:
			v.AddViolation("update_mask", "%q is not among graph, name, description, context, config, metadata, metadata.KEY", reason.ClipText(path, MaxNameLength))
		}
	}
	return c
}

// setAssistantLabel sets a label, or removes it when the assistant in the request lacks it.
func setAssistantLabel(c *runtime.UpdateAssistantRequest, key string, labels map[string]string) {
	value, set := labels[key]
	if !set {
		c.DropKeys = append(c.DropKeys, key)
		return
	}
	if c.Metadata == nil {
		c.Metadata = make(map[string]string)
	}
	c.Metadata[key] = value
}

// assistantMaskPaths returns the mask; without a mask, the fields that are set.
func assistantMaskPaths(req *graphdv1.UpdateAssistantRequest) []string {
	if paths := req.GetUpdateMask().GetPaths(); len(paths) > 0 {
		return paths
	}
	a := req.GetAssistant()
	var paths []string
	for _, field := range []struct {
		path string
		set  bool
	}{
		{maskGraph, a.GetGraph() != ""},
		{maskName, a.GetName() != ""},
		{maskDescription, a.GetDescription() != ""},
		{maskContext, a.GetContext() != nil},
		{maskConfig, a.GetConfig() != nil},
		{maskMetadata, len(a.GetMetadata()) > 0},
	} {
		if field.set {
			paths = append(paths, field.path)
		}
	}
	return paths
}
