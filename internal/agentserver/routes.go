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
		{"GET /ok", showHealth},
		{"GET /info", showInfo},

		{"POST /assistants", createAssistant},
		{"POST /assistants/search", searchAssistants},
		{"POST /assistants/count", countAssistants},
		{"GET /assistants/{assistant}", getAssistant},
		{"PATCH /assistants/{assistant}", updateAssistant},
		{"DELETE /assistants/{assistant}", deleteAssistant},
		{"GET /assistants/{assistant}/graph", getAssistantGraph},
		{"GET /assistants/{assistant}/schemas", getAssistantSchemas},
		{"GET /assistants/{assistant}/subgraphs", getAssistantSubgraphs},
		{"GET /assistants/{assistant}/subgraphs/{namespace}", getAssistantSubgraphs},
		{"POST /assistants/{assistant}/versions", listAssistantVersions},
		{"POST /assistants/{assistant}/latest", activateAssistantVersion},

		{"POST /threads", createThread},
		{"POST /threads/search", searchThreads},
		{"POST /threads/count", countThreads},
		{"GET /threads/{thread}", getThread},
		{"PATCH /threads/{thread}", updateThread},
		{"DELETE /threads/{thread}", deleteThread},
		{"POST /threads/{thread}/copy", copyThread},
		{"POST /threads/prune", pruneThreads},

		{"GET /threads/{thread}/state", getState},
		{"POST /threads/{thread}/state", updateState},
		{"POST /threads/{thread}/state/checkpoint", getStateAtCheckpoint},
		{"GET /threads/{thread}/state/{checkpoint}", getState},
		{"GET /threads/{thread}/history", listHistory},
		{"POST /threads/{thread}/history", listHistory},

		{"GET /threads/{thread}/runs", listRuns},
		{"POST /threads/{thread}/runs", createRun},
		{"POST /threads/{thread}/runs/stream", streamRun},
		{"POST /threads/{thread}/runs/wait", waitForRun},
		{"GET /threads/{thread}/runs/{run}", getRun},
		{"DELETE /threads/{thread}/runs/{run}", deleteRun},
		{"GET /threads/{thread}/runs/{run}/join", joinRun},
		{"GET /threads/{thread}/runs/{run}/stream", joinStream},
		{"POST /threads/{thread}/runs/{run}/cancel", cancelRun},

		{"GET /threads/{thread}/stream", joinThreadStream},
		{"POST /threads/{thread}/commands", runCommandOnThread},
		{"POST /threads/{thread}/stream/events", streamEvents},

		{"POST /runs", createRun},
		{"POST /runs/stream", streamRun},
		{"POST /runs/wait", waitForRun},
		{"POST /runs/batch", createRuns},
		{"POST /runs/cancel", cancelRuns},

		{"POST /runs/crons", createCron},
		{"POST /threads/{thread}/runs/crons", createCron},
		{"POST /runs/crons/search", searchCrons},
		{"POST /runs/crons/count", countCrons},
		{"GET /runs/crons/{cron}", getCron},
		{"PATCH /runs/crons/{cron}", updateCron},
		{"DELETE /runs/crons/{cron}", deleteCron},

		{"PUT /store/items", putItem},
		{"GET /store/items", getItem},
		{"DELETE /store/items", deleteItem},
		{"POST /store/items/search", searchItems},
		{"POST /store/namespaces", listNamespaces},

		{"/", refusePath},
	}...)
}

// listAbsentRoutes lists the endpoints of LangGraph Server that graphd does not have.
func listAbsentRoutes() []route {
	var list []route
	for part, patterns := range map[string][]string{
		"A2A": {"/a2a/"},
		"MCP": {"/mcp", "/mcp/"},
	} {
		detail := fmt.Sprintf("graphd does not serve this part of the API (%s): docs/langgraph-api.md lists what it serves", part)
		for _, pattern := range patterns {
			list = append(list, route{pattern, func(*call) error { return newError(http.StatusNotFound, "FEATURE_DISABLED", detail) }})
		}
	}
	return list
}

// refusePath answers a request for no endpoint.
func refusePath(c *call) error {
	return newError(http.StatusNotFound, "ENDPOINT_NOT_FOUND",
		fmt.Sprintf("there is no endpoint %.20s %.200s: docs/langgraph-api.md lists those that there are", c.r.Method, c.r.URL.Path))
}

// showHealth answers GET /ok.
func showHealth(c *call) error { return c.writeJSON(http.StatusOK, map[string]bool{"ok": true}) }

// showInfo answers GET /info.
func showInfo(c *call) error {
	return c.writeJSON(http.StatusOK, map[string]any{
		"version": c.server.opts.Version, "graphd": true,
		"flags": map[string]bool{"assistants": true, "crons": true, "store": true, "langsmith": false, "langsmith_tracing_replicas": false, "strict_resume": true},
	})
}
