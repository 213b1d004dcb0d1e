package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPersonWithoutAnEditorIsToldHowToNameOne(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	_, err := (&editor{}).editText(t.Context(), "")
	require.ErrorContains(t, err, "export EDITOR=nano")
}
