// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"iter"
	"strings"

	"github.com/setpoint-io/setpoint/object"
)

// Marks behind a beginning of a selector and behind a whole one. Neither stands in a
// label.
const (
	more  = ","
	whole = ";"
)

// places returns where a selector stands in the tree of a namespace.
func places(namespace string, selector object.Labels) []string {
	var all []string
	var path strings.Builder
	path.WriteString(namespace)
	path.WriteByte('/')
	left := selector.Len()
	for key, value := range selector.All() {
		path.WriteString(key)
		path.WriteByte('=')
		path.WriteString(value)
		if left--; left > 0 {
			path.WriteString(more)
			all = append(all, path.String())
		}
	}
	if len(selector) == 0 {
		return nil
	}
	return append(all, path.String()+whole)
}

// matching calls found for each of the keys whose selectors the labels match. at
// returns what stands at a place of the tree.
func matching[V any](namespace string, labels object.Labels, at func(place string) iter.Seq2[object.Key, V], found func(object.Key)) {
	w := walk[V]{at: at, found: found}
	for key, value := range labels.All() {
		w.pairs = append(w.pairs, key+"="+value)
	}
	w.from(namespace+"/", 0)
}

type walk[V any] struct {
	at    func(string) iter.Seq2[object.Key, V]
	found func(object.Key)
	pairs []string
}

// from goes on from a place by each of the pairs from next on.
func (w *walk[V]) from(place string, next int) {
	for i := next; i < len(w.pairs); i++ {
		step := place + w.pairs[i]
		for key := range w.at(step + whole) {
			w.found(key)
		}
		if i+1 == len(w.pairs) {
			continue
		}
		for range w.at(step + more) {
			w.from(step+more, i+1)
			break // that it exists is enough
		}
	}
}
