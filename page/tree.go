// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
)

// tree is what is below an object.
type tree struct {
	Rows []treeRow
	All  int
	More int // objects that no row names or counts
	// Unfold is the address of the view that names more of them, UnfoldMore how many it names at most, and Fold the
	// address of the usual view. Each is empty if there is no such view.
	Unfold, Fold string
	UnfoldMore   int

	troubled map[string]bool // by the UIDs of the objects that are in trouble, or that own one that is

	alike, most int // how many objects that are alike are named, and how many in all
}

// treeRow is an object below, or a number of them that are alike.
type treeRow struct {
	Depth int
	Kind  string
	Name  string
	Link  string
	Mark  mark
	Text  string // what is wrong
	Alike int    // how many more of the kind, owner and state are folded into this row
}

// mostAlike is how many objects of one kind, owner and state the tree names. It counts the others.
const mostAlike = 3

// Bounds of the tree: its rows while objects that are alike are folded, how many more rows each page names when they are
// not, and how many rows there are at most.
const (
	mostTreeRows = 100
	unfoldStep   = 100
	mostUnfolded = 2000
)

// treeOf returns the tree below an object, each object below its owner, what is in trouble first. self is the address of the
// view.
func treeOf(parts []explain.Part, base, self string, chosen choice) tree {
	t := tree{All: len(parts), troubled: map[string]bool{}, alike: mostAlike, most: mostTreeRows}
	if chosen.below > 0 {
		t.alike, t.most = chosen.below, chosen.below
	}
	depths := map[string]int{}
	for i := range parts {
		depths[string(parts[i].Object.UID)] = parts[i].Depth
	}
	children := map[string][]*explain.Part{} // by the UIDs of owners
	for i := range parts {
		owner := ownerAmong(depths, &parts[i])
		children[owner] = append(children[owner], &parts[i])
	}
	t.mark(children, "")
	t.add(children, "", 0, base)
	next, usual := chosen, chosen
	next.below, usual.below = min(chosen.below+unfoldStep, mostUnfolded), 0
	if left := t.left(); left > 0 && next.below > chosen.below {
		t.Unfold, t.UnfoldMore = self+next.query()+"#below", min(left, unfoldStep)
	}
	if chosen.below > 0 {
		t.Fold = self + usual.query() + "#below"
	}
	return t
}

// left returns how many objects no row names.
func (t *tree) left() int {
	left := t.More
	for i := range t.Rows {
		left += t.Rows[i].Alike
	}
	return left
}

// ownerAmong returns the UID of the owner through which a part was found; "" is the object itself. depths has the depth of each part: objects
// may own each other, and would be in no tree then.
func ownerAmong(depths map[string]int, of *explain.Part) string {
	if of.Depth <= 1 {
		return ""
	}
	for _, ref := range (jsontree.Tree{Value: of.State}).List("metadata", "ownerReferences") {
		uid := ref.Text("uid")
		if depth, known := depths[uid]; known && depth == of.Depth-1 {
			return uid
		}
	}
	return ""
}

// mark notes which objects of an owner are in trouble, or own one that is, and reports whether there is one. A ReplicaSet may say that all is
// well while its Pods fail.
func (t *tree) mark(children map[string][]*explain.Part, owner string) (found bool) {
	for _, p := range children[owner] {
		uid := string(p.Object.UID)
		if below := uid != "" && t.mark(children, uid); below || len(p.Trouble) > 0 {
			t.troubled[uid], found = true, true
		}
	}
	return found
}

// add adds the objects of an owner, and below each what it owns.
func (t *tree) add(children map[string][]*explain.Part, owner string, depth int, base string) {
	type sort struct{ kind, text string }
	named, rows := map[sort]int{}, map[sort]int{} // how many are named, and the row of the last of them
	for _, wrong := range []bool{true, false} {
		for _, p := range children[owner] {
			if wrong != t.troubled[string(p.Object.UID)] {
				continue
			}
			of := sort{kind: p.Object.Kind, text: firstOf(p.Trouble)}
			if len(children[string(p.Object.UID)]) == 0 && named[of] == t.alike || len(t.Rows) >= t.most {
				if at, known := rows[of]; known {
					t.Rows[at].Alike++
				} else {
					t.More++
				}
				continue
			}
			named[of]++
			row := treeRow{Depth: depth, Kind: p.Object.Kind, Name: p.Object.Name, Link: linkOf(p.Object, base), Mark: well(), Text: of.text}
			if wrong {
				row.Mark = trouble()
			}
			rows[of] = len(t.Rows)
			t.Rows = append(t.Rows, row)
			t.add(children, string(p.Object.UID), depth+1, base)
		}
	}
}

func firstOf(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
