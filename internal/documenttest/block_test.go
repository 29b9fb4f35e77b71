// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"strings"
	"testing"
)

const page = `# Title

<!-- test of go: a TestGo -->

## A slow rollout

    indented text is no block

<!-- test: b TestB/x; c TestC -->
` + "```sh" + `
kubectl get pods   # some
` + "```" + `

` + "```go" + `
x := 1
` + "```" + `

- a list

  <!-- not run: a drawing -->
  ` + "```" + `
  a ─▶ b
    c
  ` + "```" + `

## ` + "`setpoint` & more" + `

` + "```sh" + `
ls
` + "```" + `
`

func TestBlocksHaveNamesAndClaims(t *testing.T) {
	blocks, err := Parse("docs/a.md", page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{Line: 10, Name: "a-slow-rollout", Language: "sh", Text: "kubectl get pods   # some\n", Tests: []string{"b TestB/x", "c TestC"}},
		{Line: 14, Name: "a-slow-rollout-2", Language: "go", Text: "x := 1\n", Tests: []string{"a TestGo"}},
		{Line: 21, Name: "a-slow-rollout-3", Language: "text", Text: "a ─▶ b\n  c\n", NotRun: "a drawing"},
		{Line: 28, Name: "setpoint--more", Language: "sh", Text: "ls\n"},
	}
	if len(blocks) != len(want) {
		t.Fatalf("there are %d blocks, want %d: %+v", len(blocks), len(want), blocks)
	}
	for i, b := range blocks {
		w := want[i]
		if b.Line != w.Line || b.Name != w.Name || b.Language != w.Language || b.Text != w.Text || b.NotRun != w.NotRun ||
			strings.Join(b.Tests, ";") != strings.Join(w.Tests, ";") {
			t.Errorf("block %d is\n%+v\nwant\n%+v", i, b, w)
		}
	}
}

func TestCommentsThatAreForNoBlockAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"<!-- test: a TestA -->\n\n```\nx\n```\n":                      "a.md:1: the comment is for a block, which must begin in the next line",
		"<!-- test: a TestA -->":                                       "a.md:1: no block follows the comment",
		"<!-- test: -->\n```\nx\n```\n":                                "a.md:1: the comment names no test and no reason",
		"<!-- test of go: a TestA -->\n```sh\nx\n```\n":                "a.md:1: no block has the language go",
		"<!-- test of go: a TestA -->\n<!-- test of go: b TestB -->\n": "a.md:2: there is a comment for blocks of go already",
		"```\nx\n": "a.md:1: the block has no end",
	} {
		if _, err := Parse("a.md", text); err == nil || err.Error() != says {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

func TestCommandsOfAListHaveNoDescriptions(t *testing.T) {
	b := Block{Text: "# from here\nsetpoint watch                 Pods\nsetpoint watch -n team-a    # one namespace\n" +
		"setpoint watch --all \\\n  -o json\n\ngo run . cache\t# of memory\nsetpoint watch deploy\n"}
	want := []string{"setpoint watch", "setpoint watch -n team-a", "setpoint watch --all -o json", "go run . cache", "setpoint watch deploy"}
	if got := b.Commands(); strings.Join(got, ";") != strings.Join(want, ";") {
		t.Errorf("the commands are %q, want %q", got, want)
	}
}
