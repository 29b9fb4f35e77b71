// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	clientgo "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// controllerRuntimeSide is controller-runtime, with its defaults.
const controllerRuntimeSide = "controller-runtime"

// itemsSide is Setpoint's queue with workers that range over its Items, which is
// what its documentation begins with.
const itemsSide = "setpoint-items"

// A measuredQueue is one of the queues as a controller uses it.
type measuredQueue[K comparable] interface {
	// add asks for a run of key, for the i-th time that something happened, with
	// all that the queue can keep about it.
	add(i int, key K)
	get() K
	done(key K)
	addRateLimited(key K)
	// settle returns when the queue has taken in what was added.
	settle()
	shutDown()
	// work hands keys to body until it returns false.
	work(body func(key K) bool)
}

// getAndDone is how a worker of client-go works, and one of controller-runtime.
func getAndDone[K comparable](q interface {
	get() K
	done(K)
}, body func(K) bool) {
	for more := true; more; {
		key := q.get()
		more = body(key)
		q.done(key)
	}
}

func newMeasuredQueue[K comparable](side string, limited bool) measuredQueue[K] {
	switch {
	case side == setpointSide:
		return &setpointQueue[K]{q: workqueue.New(workqueue.Options[K]{Name: "bench"})}
	case side == itemsSide:
		return &itemsQueue[K]{setpointQueue[K]{q: workqueue.New(workqueue.Options[K]{Name: "bench"})}}
	case side == controllerRuntimeSide:
		return controllerRuntimeQueue[K]{priorityqueue.New[K]("bench")}
	case limited:
		return clientGoQueue[K]{clientgo.NewTypedRateLimitingQueue(clientgo.DefaultTypedControllerRateLimiter[K]())}
	default:
		return clientGoPlainQueue[K]{clientgo.NewTyped[K]()}
	}
}

// setpointQueue is Setpoint's, with a priority and a cause for each add, as a
// controller has them of its sources; it always counts. Its workers call Get and
// Done, as those of all the queues do.
type setpointQueue[K comparable] struct{ q *workqueue.Queue[K] }

// queuePriorities take turns, for the queues that have priorities, and queueAdds
// are the adds that have them.
var (
	queuePriorities = [...]int{int(workqueue.Low), int(workqueue.Normal), int(workqueue.High)}
	queueAdds       = func() (adds [len(queuePriorities)]workqueue.Add) {
		for i, priority := range queuePriorities {
			adds[i] = workqueue.Add{Priority: workqueue.Priority(priority), Cause: workqueue.Cause{
				Source: "pods", Verb: workqueue.Updated, Version: "5000000001",
				Ref: object.Ref{Kind: "Pod", Key: object.Key{Namespace: "team-0", Name: "web-0-x7k2p"}, UID: "6f0bd3c1"},
			}}
		}
		return adds
	}()
)

func (s *setpointQueue[K]) add(i int, key K) { s.q.AddWith(queueAdds[i%len(queueAdds)], key) }

func (s *setpointQueue[K]) get() K {
	item, _ := s.q.Get()
	return item.Key
}

func (s *setpointQueue[K]) done(key K)           { s.q.Done(key) }
func (s *setpointQueue[K]) addRateLimited(key K) { s.q.AddRateLimited(key) }
func (s *setpointQueue[K]) settle()              {} // nothing is left to later
func (s *setpointQueue[K]) shutDown()            { s.q.ShutDown() }

func (s *setpointQueue[K]) work(body func(K) bool) { getAndDone(s, body) }

// itemsQueue is Setpoint's, with workers that range over its Items.
type itemsQueue[K comparable] struct{ setpointQueue[K] }

func (s *itemsQueue[K]) work(body func(K) bool) {
	for item := range s.q.Items() {
		if !body(item.Key) {
			return
		}
	}
}

// clientGoPlainQueue is client-go's typed queue, without a name and so without
// metrics.
type clientGoPlainQueue[K comparable] struct{ q *clientgo.Typed[K] }

func (c clientGoPlainQueue[K]) add(_ int, key K) { c.q.Add(key) }

func (c clientGoPlainQueue[K]) get() K {
	key, _ := c.q.Get()
	return key
}

func (c clientGoPlainQueue[K]) work(body func(K) bool) { getAndDone(c, body) }
func (c clientGoPlainQueue[K]) done(key K)             { c.q.Done(key) }
func (c clientGoPlainQueue[K]) addRateLimited(key K)   { c.q.Add(key) }
func (c clientGoPlainQueue[K]) settle()                {}
func (c clientGoPlainQueue[K]) shutDown()              { c.q.ShutDown() }

// clientGoQueue is client-go's rate limiting queue, with the limits that its
// controllers have.
type clientGoQueue[K comparable] struct {
	q clientgo.TypedRateLimitingInterface[K]
}

func (c clientGoQueue[K]) add(_ int, key K) { c.q.Add(key) }

func (c clientGoQueue[K]) get() K {
	key, _ := c.q.Get()
	return key
}

func (c clientGoQueue[K]) work(body func(K) bool) { getAndDone(c, body) }
func (c clientGoQueue[K]) done(key K)             { c.q.Done(key) }
func (c clientGoQueue[K]) addRateLimited(key K)   { c.q.AddRateLimited(key) }
func (c clientGoQueue[K]) settle()                {} // at most the 1,000 that its channel holds are left
func (c clientGoQueue[K]) shutDown()              { c.q.ShutDown() }

// controllerRuntimeQueue is controller-runtime's priority queue, with its metrics,
// as its controllers have it.
type controllerRuntimeQueue[K comparable] struct {
	q priorityqueue.PriorityQueue[K]
}

func (c controllerRuntimeQueue[K]) add(i int, key K) {
	c.q.AddWithOpts(priorityqueue.AddOpts{Priority: &queuePriorities[i%len(queuePriorities)]}, key)
}

func (c controllerRuntimeQueue[K]) get() K {
	key, _ := c.q.Get()
	return key
}

func (c controllerRuntimeQueue[K]) work(body func(K) bool) { getAndDone(c, body) }
func (c controllerRuntimeQueue[K]) done(key K)             { c.q.Done(key) }
func (c controllerRuntimeQueue[K]) addRateLimited(key K)   { c.q.AddRateLimited(key) }
func (c controllerRuntimeQueue[K]) settle()                { c.q.Len() } // takes in what was added
func (c controllerRuntimeQueue[K]) shutDown()              { c.q.ShutDown() }
