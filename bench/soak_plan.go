// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// soakAction is something that happens to the cluster, or to a process that follows it.
type soakAction string

const (
	createDeployment soakAction = "create a Deployment"
	rollDeployment   soakAction = "roll a Deployment"
	scaleDeployment  soakAction = "scale a Deployment"
	deleteDeployment soakAction = "delete a Deployment"
	createConfigMap  soakAction = "create a ConfigMap"
	updateConfigMap  soakAction = "update a ConfigMap"
	deleteConfigMap  soakAction = "delete a ConfigMap"
	defineKind       soakAction = "define a custom resource"
	removeKind       soakAction = "remove a custom resource"
	addHandler       soakAction = "add a handler"
	removeHandler    soakAction = "remove a handler"
	addInformer      soakAction = "add an informer"
	releaseInformer  soakAction = "release an informer"
	cutConnections   soakAction = "cut all connections"
	restartServer    soakAction = "restart the control plane"
	handOver         soakAction = "have the managers hand over"
)

// soakStep is an action at a time.
type soakStep struct {
	at     time.Duration // since the part began
	action soakAction
	name   string // of the object
	n      int    // replicas, or the number of the image or content
}

// soakLimits are how many of each there may be at once.
const (
	soakDeployments = 12
	soakReplicas    = 8
	soakConfigMaps  = 40
	soakKinds       = 3
	soakHandlers    = 6
	soakInformers   = 4
)

// soakPlan is what happens in a part of the soak, and what removes all that is left
// of it. The same prefix, seed and length give the same plan.
func soakPlan(prefix string, seed uint64, length time.Duration) (steps, cleanup []soakStep) {
	p := &soakPlanner{prefix: prefix, random: rand.New(rand.NewPCG(seed, uint64(len(prefix))))}
	for at := time.Duration(0); at < length; at += time.Duration(100+p.random.IntN(300)) * time.Millisecond {
		p.at = at
		p.next()
	}
	p.every(length, cutConnections, 7*time.Second, length)
	p.every(length, restartServer, 75*time.Second, length)
	// There is none in the last two fifths, so that the last leader has the time to leak.
	p.every(length, handOver, 60*time.Second, length*3/5)
	slices.SortStableFunc(p.steps, func(a, b soakStep) int { return int(a.at - b.at) })
	return p.steps, p.rest(length)
}

// soakPlanner knows what is there while it plans.
type soakPlanner struct {
	prefix string
	random *rand.Rand
	at     time.Duration
	count  int
	steps  []soakStep
	alive  [len(soakLifes)][]string // names, by the index in soakLifes
}

// soakLifes are the things that come and go.
var soakLifes = [...]struct {
	what                   string
	begin, change, reverse soakAction // change may be empty
	most                   int
	weight                 int // how often it is chosen, of soakWeights
}{
	{"web", createDeployment, rollDeployment, deleteDeployment, soakDeployments, 9},
	{"config", createConfigMap, updateConfigMap, deleteConfigMap, soakConfigMaps, 7},
	{"kind", defineKind, "", removeKind, soakKinds, 1},
	{"handler", addHandler, "", removeHandler, soakHandlers, 2},
	{"informer", addInformer, "", releaseInformer, soakInformers, 1},
}

const soakWeights = 20

// next plans one step: something begins, changes or ends.
func (p *soakPlanner) next() {
	chosen, i := p.random.IntN(soakWeights), 0
	for ; chosen >= soakLifes[i].weight; i++ {
		chosen -= soakLifes[i].weight
	}
	life, alive := soakLifes[i], p.alive[i]
	dice := p.random.IntN(100)
	switch {
	case len(alive) == 0 || dice < 35 && len(alive) < life.most:
		p.count++
		name := fmt.Sprintf("%s%s%d", p.prefix, life.what, p.count)
		p.alive[i] = append(alive, name)
		p.add(life.begin, name)
	case dice < 65 || len(alive) >= life.most && life.change == "":
		at := p.random.IntN(len(alive))
		p.add(life.reverse, alive[at])
		p.alive[i] = slices.Delete(alive, at, at+1)
	case life.change != "":
		change := life.change
		if change == rollDeployment && p.random.IntN(2) == 0 {
			change = scaleDeployment
		}
		p.add(change, alive[p.random.IntN(len(alive))])
	}
}

func (p *soakPlanner) add(action soakAction, name string) {
	p.steps = append(p.steps, soakStep{p.at, action, name, 1 + p.random.IntN(soakReplicas)})
}

// every plans an action again and again until a time, or once in the middle if the
// part is too short for that.
func (p *soakPlanner) every(length time.Duration, action soakAction, period, until time.Duration) {
	if period > until*2/3 {
		p.steps = append(p.steps, soakStep{at: until / 2, action: action})
		return
	}
	for at := period; at < until-period/4; at += period*3/4 + time.Duration(p.random.Int64N(int64(period/2))) {
		p.steps = append(p.steps, soakStep{at: min(at, length), action: action})
	}
}

// rest is what removes everything that is there.
func (p *soakPlanner) rest(at time.Duration) []soakStep {
	var steps []soakStep
	for i, alive := range p.alive {
		for _, name := range alive {
			steps = append(steps, soakStep{at, soakLifes[i].reverse, name, 0})
		}
	}
	return steps
}
