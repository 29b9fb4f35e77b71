// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Stage is a source of the pages. It implements page.Source, and is safe for concurrent use.
type Stage struct {
	record    *runs.Record
	client    *client.Client
	resources map[string]*fakeapi.Resource // by plural
	began     time.Time                    // of the story

	mu       sync.Mutex
	overview manager.Overview
	version  int
}

// kinds are those that the cluster serves.
func kinds() []object.Resource {
	core := func(plural, kind string) object.Resource {
		return object.Resource{Version: "v1", Plural: plural, Kind: kind, Namespaced: kind != "Namespace" && kind != "Node"}
	}
	apps := func(plural, kind string) object.Resource {
		return object.Resource{Group: "apps", Version: "v1", Plural: plural, Kind: kind, Namespaced: true}
	}
	return []object.Resource{
		core("pods", "Pod"), core("events", "Event"), core("services", "Service"), core("configmaps", "ConfigMap"), core("namespaces", "Namespace"), core("nodes", "Node"),
		apps("deployments", "Deployment"), apps("replicasets", "ReplicaSet"),
	}
}

// New returns a stage with an empty cluster and a record of some bytes.
func New(recordBytes int) (*Stage, error) {
	s := &Stage{resources: map[string]*fakeapi.Resource{}, version: 100, began: time.Now().Add(-3 * time.Minute).Truncate(time.Second)}
	server := fakeapi.New()
	for _, r := range kinds() {
		s.resources[r.Plural] = server.Serve(r)
	}
	var err error
	if s.record, err = runs.New(recordBytes); err != nil {
		return nil, err
	}
	if s.client, err = client.New(s.resources["pods"].Config()); err != nil {
		return nil, err
	}
	s.overview = manager.Overview{Instance: "node-2", State: "working", Holder: "node-2"}
	return s, nil
}

// Overviews implements page.Source.
func (s *Stage) Overviews(context.Context) (page.States, error) { return s.Own(), nil }

// Own implements page.Source.
func (s *Stage) Own() page.States {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.overview
	o.AsOf = time.Now()
	o.Loops = append([]manager.LoopView(nil), o.Loops...)
	return page.States{Known: []page.State{{Overview: o}}}
}

// Record implements page.Source.
func (s *Stage) Record() gather.Record { return gather.Local(s.record) }

// Client implements page.Source.
func (s *Stage) Client() *client.Client { return s.client }

// Run records a run of a controller, and counts it in the state of the loop.
func (s *Stage) Run(controller string, of runs.Object, at time.Time, cause workqueue.Cause, change func(*runs.Ended)) error {
	causes, err := causesOf(cause)
	if err != nil {
		return err
	}
	run := &runs.Ended{Began: at, Took: 2100 * time.Microsecond, Outcome: runs.Done, Causes: causes}
	if change != nil {
		change(run)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	runs.Add(s.record.Loop(controller, of.Group, of.Kind), of.Ref().Key, run)
	for i := range s.overview.Loops {
		if l := &s.overview.Loops[i]; l.Name == controller {
			l.Runs++
			l.Took.Counts[6]++
			l.Took.Sum += run.Took
		}
	}
	return nil
}

// nextVersion returns a resourceVersion that no object has yet.
func (s *Stage) nextVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return fmt.Sprint(s.version)
}

// causesOf makes the causes of a run, which only a queue can.
func causesOf(c workqueue.Cause) (workqueue.Causes, error) {
	q := workqueue.New(workqueue.Options[string]{Name: "stage"})
	defer q.ShutDown()
	q.AddWith(workqueue.Add{Cause: c}, "key")
	item, ok := q.Get()
	if !ok {
		return workqueue.Causes{}, fmt.Errorf("the queue has no key for the cause %v", c)
	}
	q.Done(item.Key)
	return item.Causes, nil
}
