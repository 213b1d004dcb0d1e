package main

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

const graphName = "quote"

// pricing serves the nodes price and discount.
type pricing struct {
	graphdv1.UnimplementedNodeServiceServer

	prices map[string]int // cents by article
}

func priceList() map[string]int { return map[string]int{"lamp": 4900, "desk": 29900, "chair": 12900} }

// Describe says which nodes there are; a graph that names others learns it at
// the first task.
func (*pricing) Describe(context.Context, *graphdv1.DescribeRequest) (*graphdv1.WorkerManifest, error) {
	return &graphdv1.WorkerManifest{
		Deployment: "pricing",
		Features:   []string{"drift"}, // it compares what it asks with what was answered
		Nodes: []*graphdv1.ServedNode{
			{Graph: graphName, Node: "price"},
			{Graph: graphName, Node: "discount"},
		},
	}, nil
}

// ExecuteTask runs one task; its last message is the result. The deadline and
// the cancel of the task are those of the stream's context.
func (p *pricing) ExecuteTask(req *graphdv1.ExecuteTaskRequest, stream graphdv1.NodeService_ExecuteTaskServer) error {
	task := req.GetTask()
	var result *graphdv1.TaskResult
	var err error
	switch task.GetNode() {
	case "price":
		result, err = p.lookUpPrices(task, stream)
	case "discount":
		result, err = askForDiscount(task)
	default:
		return status.Errorf(codes.Unimplemented, "there is no node %q", task.GetNode())
	}
	if err != nil {
		return err
	}
	return stream.Send(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: result}})
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int    `json:"cents"`
}

// lookUpPrices looks up the price of each article, and sends an event after each.
func (p *pricing) lookUpPrices(
	task *graphdv1.TaskAssignment, stream graphdv1.NodeService_ExecuteTaskServer,
) (*graphdv1.TaskResult, error) {
	var lines []line
	if err := json.Unmarshal([]byte(task.GetChannels()["items"].GetJson()), &lines); err != nil {
		return newFailedResult("InvalidOrder", fmt.Sprintf("items: %v", err)), nil
	}
	total := 0
	for i := range lines {
		cents, ok := p.prices[lines[i].SKU]
		if !ok {
			return newFailedResult("UnknownArticle", fmt.Sprintf("items[%d]: there is no article %q", i, lines[i].SKU)), nil
		}
		lines[i].Cents = cents * lines[i].Quantity
		total += lines[i].Cents
		if err := emitValue(stream, map[string]any{"priced": lines[i].SKU}); err != nil {
			return nil, err
		}
	}
	return newCompletedResult(map[string]any{"lines": lines, "total": total})
}

// askForDiscount asks a person about the discount of a large order. The question ends
// the attempt. After the answer the task comes again, with the answer in its journal.
func askForDiscount(task *graphdv1.TaskAssignment) (*graphdv1.TaskResult, error) {
	var total int
	if err := json.Unmarshal([]byte(task.GetChannels()["total"].GetJson()), &total); err != nil {
		return newFailedResult("InvalidTotal", fmt.Sprintf("total: %v", err)), nil
	}
	if total < 20000 {
		return newCompletedResult(map[string]any{"discount": 0})
	}
	question := &graphdv1.Ask{
		Key: "discount", Reason: "approval",
		Message:        fmt.Sprintf("The order is worth %d cents. How many percent off?", total),
		Value:          newPayload(fmt.Sprintf(`{"total":%d}`, total)),
		ResponseSchema: newPayload(`{"type":"integer","minimum":0,"maximum":15}`),
	}
	answer := findAnswer(task, question)
	if answer == nil {
		return newInterruptedResult(question), nil
	}
	percent := json.RawMessage("0")
	if answer.GetValue() != nil { // neither dismissed nor expired
		percent = json.RawMessage(answer.GetValue().GetJson())
	}
	result, err := newCompletedResult(map[string]any{"discount": percent})
	return addUsedAnswer(result, question, answer), err
}
