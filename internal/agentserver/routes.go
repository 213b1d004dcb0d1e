package agentserver

import (
	"fmt"
	"net/http"
)

// handler serves one endpoint. An error becomes the answer, unless the answer has begun.
type handler func(*call) error

// route is one endpoint.
type route struct {
	pattern string // as of http.ServeMux
	handle  handler
}

// listRoutes lists all endpoints.
func listRoutes() []route {
	return append(listAbsentRoutes(), []route{
		{"GET /ok", (*call).showHealth},
		{"GET /info", (*call).showInfo},

		{"POST /assistants/search", (*call).searchAssistants},
		{"POST /assistants/count", (*call).countAssistants},
		{"GET /assistants/{assistant}", (*call).getAssistant},
		{"GET /assistants/{assistant}/graph", (*call).getAssistantGraph},
		{"GET /assistants/{assistant}/schemas", (*call).getAssistantSchemas},
		{"GET /assistants/{assistant}/subgraphs", (*call).getAssistantSubgraphs},
		{"GET /assistants/{assistant}/subgraphs/{namespace}", (*call).getAssistantSubgraphs},
		{"POST /assistants/{assistant}/versions", (*call).listAssistantVersions},

		{"POST /threads", (*call).createThread},
		{"POST /threads/search", (*call).searchThreads},
		{"POST /threads/count", (*call).countThreads},
		{"GET /threads/{thread}", (*call).getThread},
		{"PATCH /threads/{thread}", (*call).updateThread},
		{"DELETE /threads/{thread}", (*call).deleteThread},
		{"POST /threads/{thread}/copy", (*call).copyThread},
		{"POST /threads/prune", (*call).pruneThreads},

		{"GET /threads/{thread}/state", (*call).getState},
		{"POST /threads/{thread}/state", (*call).updateState},
		{"POST /threads/{thread}/state/checkpoint", (*call).getStateAtCheckpoint},
		{"GET /threads/{thread}/state/{checkpoint}", (*call).getState},
		{"GET /threads/{thread}/history", (*call).listHistory},
		{"POST /threads/{thread}/history", (*call).listHistory},

		{"GET /threads/{thread}/runs", (*call).listRuns},
		{"POST /threads/{thread}/runs", (*call).createRun},
		{"POST /threads/{thread}/runs/stream", (*call).streamRun},
		{"POST /threads/{thread}/runs/wait", (*call).waitForRun},
		{"GET /threads/{thread}/runs/{run}", (*call).getRun},
		{"DELETE /threads/{thread}/runs/{run}", (*call).deleteRun},
		{"GET /threads/{thread}/runs/{run}/join", (*call).joinRun},
		{"GET /threads/{thread}/runs/{run}/stream", (*call).joinStream},
		{"POST /threads/{thread}/runs/{run}/cancel", (*call).cancelRun},

		{"POST /runs", (*call).createRun},
		{"POST /runs/stream", (*call).streamRun},
		{"POST /runs/wait", (*call).waitForRun},
		{"POST /runs/batch", (*call).createRuns},
		{"POST /runs/cancel", (*call).cancelRuns},

		{"/", (*call).refusePath},
	}...)
}

// listAbsentRoutes lists the endpoints of LangGraph Server that graphd does not have.
func listAbsentRoutes() []route {
	var list []route
	for part, patterns := range map[string][]string{
		"store":      {"/store/"},
		"cron jobs":  {"/runs/crons", "/runs/crons/", "POST /threads/{thread}/runs/crons"},
		"A2A":        {"/a2a/"},
		"MCP":        {"/mcp", "/mcp/"},
		"assistants": {"POST /assistants", "PATCH /assistants/{assistant}", "DELETE /assistants/{assistant}", "POST /assistants/{assistant}/latest"},
	} {
		detail := fmt.Sprintf("graphd does not serve this part of the API (%s): docs/langgraph-api.md lists what it serves", part)
		if part == "assistants" {
			detail = "graphd keeps no assistants of its own: each graph has one default assistant, which can't be changed"
		}
		for _, pattern := range patterns {
			list = append(list, route{pattern, func(*call) error { return newError(http.StatusNotFound, "FEATURE_DISABLED", detail) }})
		}
	}
	return list
}

// refusePath answers a request for no endpoint.
func (c *call) refusePath() error {
	return newError(http.StatusNotFound, "ENDPOINT_NOT_FOUND",
		fmt.Sprintf("there is no endpoint %.20s %.200s: docs/langgraph-api.md lists those that there are", c.r.Method, c.r.URL.Path))
}

// showHealth answers GET /ok.
func (c *call) showHealth() error { return c.writeJSON(http.StatusOK, map[string]bool{"ok": true}) }

// showInfo answers GET /info.
func (c *call) showInfo() error {
	return c.writeJSON(http.StatusOK, map[string]any{
		"version": c.server.opts.Version, "graphd": true,
		"flags": map[string]bool{"assistants": true, "crons": false, "store": false, "langsmith": false, "langsmith_tracing_replicas": false, "strict_resume": false},
	})
}
