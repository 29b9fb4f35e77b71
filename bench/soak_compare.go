// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// soakState is the state of one object.
type soakState struct {
	uid     string
	version string
}

// soakDifference is what an informer, or a handler of it, has otherwise than the server.
type soakDifference struct {
	who                   string
	objects               int // at the server
	missing, extra, wrong int // wrong is another version, or another object of the name
	first                 string
}

func (d soakDifference) none() bool { return d.missing+d.extra+d.wrong == 0 }

// soakCompare compares what a side has with what the server has.
func soakCompare(who string, server, has map[object.Key]soakState) soakDifference {
	d := soakDifference{who: who, objects: len(server)}
	note := func(count *int, what string, key object.Key) {
		if *count++; d.first == "" {
			d.first = what + " " + key.String()
		}
	}
	for key, want := range server {
		switch got, ok := has[key]; {
		case !ok:
			note(&d.missing, "missing", key)
		case got != want:
			note(&d.wrong, fmt.Sprintf("%s instead of %s of", got.version, want.version), key)
		}
	}
	for key := range has {
		if _, ok := server[key]; !ok {
			note(&d.extra, "extra", key)
		}
	}
	return d
}

// soakFollower is an informer with a handler that keeps its notifications.
type soakFollower struct {
	name    string
	compare func(ctx context.Context) ([]soakDifference, error) // of the informer and the handler
	release func()
	again   func() func() // adds another handler and returns what removes it
}

// soakFollow starts an informer. The server is asked by a client of its own, that
// nothing is cut of.
func soakFollow[T object.Object](name string, f *cache.Factory, direct client.Typed[T], s client.Selection, options ...cache.InformerOption) (*soakFollower, error) {
	informer := cache.Informer[T](f, options...)
	var mu sync.Mutex
	told := map[object.Key]soakState{}
	registration, err := informer.AddHandler(func(e cache.Event[T]) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == cache.Deleted {
			delete(told, e.Key())
			return
		}
		told[e.Key()] = stateOf(e.New.Meta())
	}, cache.HandlerOptions{Name: "soak"})
	if err != nil {
		return nil, fmt.Errorf("following %s: %w", name, err)
	}
	return &soakFollower{
		name: name,
		compare: func(ctx context.Context) ([]soakDifference, error) {
			objects, _, err := direct.List(ctx, s)
			if err != nil && !client.Absent(err) { // its kind is not defined just now
				return nil, fmt.Errorf("listing %s: %w", name, err)
			}
			server, has := map[object.Key]soakState{}, map[object.Key]soakState{}
			for _, o := range objects {
				server[object.KeyOf(o)] = stateOf(object.MetaOf(o))
			}
			for key, item := range informer.Snapshot().All() {
				has[key] = stateOf(item.Meta())
			}
			mu.Lock()
			defer mu.Unlock()
			return []soakDifference{soakCompare(name, server, has), soakCompare(name+", by its handler", server, told)}, nil
		},
		release: func() {
			registration.Remove()
			informer.Release()
		},
		again: func() func() {
			r, err := informer.AddHandler(func(e cache.Event[T]) { _, _ = e.Item().Annotations() }, cache.HandlerOptions{Name: "soak again", EveryStep: true})
			if err != nil {
				return func() {}
			}
			return r.Remove
		},
	}, nil
}

func stateOf(m object.Meta) soakState {
	return soakState{uid: string(m.UID), version: fmt.Sprint(m.Version)}
}

// printDifferences prints a table.
func printDifferences(out io.Writer, all []soakDifference) {
	fmt.Fprintf(out, "%-44s %8s %8s %8s %14s\n", "informer", "objects", "missing", "extra", "wrong version")
	for _, d := range all {
		fmt.Fprintf(out, "%-44s %8d %8d %8d %14d  %s\n", d.who, d.objects, d.missing, d.extra, d.wrong, d.first)
	}
}
