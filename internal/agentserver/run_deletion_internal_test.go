package agentserver

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestDeletedRunsOfAThreadAreBounded(t *testing.T) {
	labels := map[string]string{"user": "u"}
	var ids []string
	for range maxDeletedLabels * deletedPerLabel {
		id := uuid.NewString()
		key, err := addDeletedRun(labels, id)
		require.NoError(t, err)
		require.LessOrEqual(t, len(labels[key]), maxLabelBytes)
		ids = append(ids, id)
	}
	require.Len(t, labels, 1+maxDeletedLabels)
	deleted := readDeletedRuns(labels)
	require.Len(t, deleted, len(ids))
	for _, id := range ids {
		require.True(t, deleted[id])
	}
	_, err := addDeletedRun(labels, uuid.NewString())
	require.Equal(t, "RUN_NOT_DELETABLE", reasonOf(err))
	require.Len(t, readLabels(labels), 1, "clients do not see them")
}
