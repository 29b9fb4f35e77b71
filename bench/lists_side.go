// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// listing is one way to read many objects.
type listing struct {
	name string
	list func() (int, error)
}

// How often a list is repeated: until it has taken so much CPU time, within bounds.
const (
	listWarmUp   = 8
	listsMost    = 2000
	listsSeconds = 0.3
)

// measureRepeatedLists measures lists that a reader makes again and again while nothing changes: the
// first one, and then the others. The figures are CPU microseconds of one list.
func measureRepeatedLists(ctx context.Context, s *sideSpec) (_ readings, err error) {
	from, err := s.server()
	if err != nil {
		return nil, err
	}
	var h handler
	i, err := newInformer(s, from, &h)
	if err != nil {
		return nil, err
	}
	if err := i.sync(ctx); err != nil {
		return nil, err
	}
	defer i.stop()
	listings, err := listingsOf(i)
	if err != nil {
		return nil, err
	}
	found := readings{}
	for _, l := range listings {
		if err := l.measure(found); err != nil {
			return nil, fmt.Errorf("listing %s: %w", l.name, err)
		}
	}
	return found, nil
}

// listingsOf returns the lists, those first that decode least.
func listingsOf(i informer) ([]listing, error) {
	byTeam := labels.SelectorFromSet(labels.Set{"team": team})
	all := []listing{{"metadata-selected", func() (int, error) { return i.countSelected(byTeam) }}}
	keys := sortedKeys(i)
	one, err := i.get(keys[0])
	if err != nil {
		return nil, err
	}
	if hash := one.GetLabels()["pod-template-hash"]; hash != "" {
		few := labels.SelectorFromSet(labels.Set{"pod-template-hash": hash})
		all = append(all, listing{"few-selected", func() (int, error) { return i.listSelected(few) }})
	}
	if middle, n := middleNamespace(i); middle != "" {
		all = append(all, listing{"namespace", func() (int, error) {
			got, err := i.listNamespace(middle)
			if err == nil && got != n {
				err = fmt.Errorf("namespace %q has %d objects, want %d", middle, got, n)
			}
			return got, err
		}})
	}
	return append(all,
		listing{"selected", func() (int, error) { return i.listSelected(byTeam) }},
		listing{"all", func() (int, error) { return i.listSelected(labels.Everything()) }}), nil
}

// middleNamespace returns a namespace of middling size, and how many objects it has.
func middleNamespace(i informer) (name string, objects int) {
	sizes := map[string]int{}
	for _, key := range i.keys() {
		sizes[key.Namespace]++
	}
	spaces := make([]string, 0, len(sizes))
	for space := range sizes {
		spaces = append(spaces, space)
	}
	slices.SortFunc(spaces, func(a, b string) int { return cmp.Or(sizes[a]-sizes[b], cmp.Compare(a, b)) })
	name = spaces[len(spaces)/2]
	return name, sizes[name]
}

// measure adds the CPU time of the first list and of the others.
func (l *listing) measure(found readings) error {
	liveHeap()
	first, err := timed(func() error {
		n, err := l.list()
		found[l.name+"-objects"] = float64(n)
		return err
	})
	if err != nil {
		return err
	}
	found[l.name+"-first"] = first.cpu * 1e6
	for range listWarmUp {
		if _, err := l.list(); err != nil {
			return err
		}
	}
	liveHeap()
	count, spent := 0, 0.0
	for step := 1; spent < listsSeconds && count < listsMost; step *= 2 {
		again, err := timed(func() error {
			for range step {
				if _, err := l.list(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		count, spent = count+step, spent+again.cpu
	}
	found[l.name+"-again"] = spent / float64(count) * 1e6
	return nil
}
