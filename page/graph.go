// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"
	"unicode/utf8"
)

// graph is the chain of causes drawn from left to right in time. The list beside it has the whole texts.
type graph struct {
	Width, Height int
	Nodes         []node
	Edges         []edge
}

// node is a step.
type node struct {
	X, Y, Width, Height int
	TextX, ActorY       int
	TextY, TimeY        int
	Actor, Text, Time   string
	Whole               string // what Text is cut from
	Link                string
	First               bool // the cause of all others
}

// edge leads from one step to the next.
type edge struct{ X1, X2, Y int }

// Sizes of the drawing, in units of CSS pixels.
const (
	nodeWidth  = 208
	nodeHeight = 72
	nodeGap    = 36
	nodeInset  = 10
)

// How many characters fit on a line of a node, in a wide font. Those of the actor are bold.
const (
	mostActorText = 23
	mostNodeText  = 26
)

// graphOf draws a chain; nil if there is none.
func graphOf(chain []step) *graph {
	if len(chain) == 0 {
		return nil
	}
	g := &graph{Width: len(chain)*(nodeWidth+nodeGap) - nodeGap + 2, Height: nodeHeight + 2}
	for i, s := range chain {
		x := 1 + i*(nodeWidth+nodeGap)
		actor := s.Actor
		if s.Probably {
			actor = "probably " + actor
		}
		g.Nodes = append(g.Nodes, node{
			X: x, Y: 1, Width: nodeWidth, Height: nodeHeight, TextX: x + nodeInset, ActorY: 23, TextY: 43, TimeY: 62,
			Actor: cut(plain(actor), mostActorText), Text: cut(plain(s.Text), mostNodeText), Time: s.At.Local().Format(time.TimeOnly),
			Whole: plain(actor + ": " + s.Text), Link: s.Link, First: i == 0,
		})
		if i > 0 {
			g.Edges = append(g.Edges, edge{X1: x - nodeGap, X2: x - 2, Y: 1 + nodeHeight/2})
		}
	}
	return g
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
