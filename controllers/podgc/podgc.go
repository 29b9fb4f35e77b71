// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "pod-garbage-collector-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Pods are removed at a time.
	Workers int
	// TerminatedPodThreshold is how many Pods that have ended may stay. With 0 or
	// less all may.
	TerminatedPodThreshold int
	// Period is how often the controller looks.
	Period time.Duration
	// Quarantine is how long a node must have been missing before the controller asks the
	// server for it.
	Quarantine time.Duration
}

func (o Options) check() error {
	if o.Period <= 0 || o.Quarantine < 0 {
		return fmt.Errorf("a period of %s and a quarantine of %s; want more than 0, and 0 or more", o.Period, o.Quarantine)
	}
	return controllers.CheckWorkers(o.Workers)
}

// allPods is the key of the look.
type allPods struct{}

// String says it to people.
func (allPods) String() string { return "all Pods" }

// The states of Pods that may have to go for what they are themselves.
const (
	stateEnded     = "ended"
	stateNotPlaced = "unscheduled"
	stateHalfway   = "halfway"
)

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		options:    o,
		pods:       cache.Informer[*corev1.Pod](h).With(client.MetadataAnswer()),
		nodes:      cache.Informer[*corev1.Node](h),
		log:        h.Logger().With("controller", Name),
		quarantine: quarantine{time: o.Quarantine},
		removals:   newRemovals(),
	}
	r.onNode = cache.TextIndex(r.pods, wire.NodeName)
	r.states, r.outOfService = cache.NewIndex(r.pods, stateOf), cache.NewIndex(r.nodes, whetherOutOfService)
	pods := controller.New(Name, r.reconcile,
		controller.Reads(r.pods),
		controller.Reads(r.nodes),
		controller.Workers(o.Workers),
	)
	r.attend = func(pod object.Key) {
		pods.Queue().AddWith(workqueue.Add{Cause: workqueue.Cause{Source: Name, Verb: workqueue.Timer}}, pod)
	}
	look := controller.NewKeyed(Name+"-look", r.look, controller.Reads(r.pods), controller.Reads(r.nodes))
	look.Periodically(o.Period, allPods{})
	return r.removals.Of(controller.Join(Name, pods, look)), nil
}

// phase is where a Pod says in which phase it is.
var phase = wire.Path{Names: "status.phase", Numbers: [4]int32{3, 1}}

// stateOf returns which of the states that the check needs a Pod is in. It is called with
// each change of each Pod, and decodes those that are being deleted.
func stateOf(item cache.Item[*corev1.Pod]) ([]string, error) {
	if !item.Meta().Deleting() {
		in, err := item.Text(phase)
		if err != nil || !podstate.Final(corev1.PodPhase(in)) {
			return nil, err
		}
		return []string{stateEnded}, nil
	}
	pod, err := item.Object()
	if err != nil {
		return nil, err
	}
	var states []string
	if podstate.Ended(pod) && !noGrace(pod) {
		states = append(states, stateEnded)
	}
	switch judge(pod, view{}) {
	case unscheduled:
		states = append(states, stateNotPlaced)
	case halfway:
		states = append(states, stateHalfway)
	case none, surplus, orphaned, outOfService: // which others decide, or more than the Pod
	}
	return states, nil
}

func whetherOutOfService(item cache.Item[*corev1.Node]) ([]string, error) {
	node, err := item.Object()
	if err != nil || !isOutOfService(node) {
		return nil, err
	}
	return []string{""}, nil
}

type reconciler struct {
	options Options
	pods    cache.SharedInformer[*corev1.Pod]
	nodes   cache.SharedInformer[*corev1.Node]
	onNode  cache.Index[*corev1.Pod] // by the name of the node
	states  cache.Index[*corev1.Pod]

	outOfService cache.Index[*corev1.Node] // under one value

	log    *slog.Logger
	attend func(object.Key) // requests a run of a Pod

	quarantine quarantine // the look's own; it runs once at a time
	removals   *removals

	mu      sync.Mutex
	surplus map[types.UID]bool // Pods that have ended, chosen by the last look
	gone    map[string]bool    // nodes that the server did not know at the last look
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := r.pods.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	v := r.viewOf(pod)
	why := judge(pod, v)
	if why == none {
		return controller.Result{}, nil
	}
	if holds, err := r.confirm(ctx, pod, v, why); err != nil || !holds {
		return controller.Result{}, err
	}
	err = r.remove(ctx, pod, why)
	r.removals.add(pod, why, err)
	return controller.Result{}, err
}

// look finds the Pods that may have to go.
func (r *reconciler) look(ctx context.Context, _ controller.RequestOf[allPods]) (controller.Result, error) {
	pods, nodes := r.pods.Snapshot(), r.nodes.Snapshot()
	chosen, err := r.tooMany(pods)
	now := time.Now()
	gone := r.goneNodes(ctx, pods, nodes, now)
	r.quarantine.because(ctx, now)
	r.mu.Lock()
	r.surplus, r.gone = map[types.UID]bool{}, gone
	for _, pod := range chosen {
		r.surplus[pod.UID] = true
	}
	r.mu.Unlock()
	for _, pod := range chosen {
		r.attend(object.KeyOf(pod))
	}
	for _, state := range []string{stateNotPlaced, stateHalfway} {
		for key := range r.states.In(pods, state) {
			r.attend(key)
		}
	}
	for key := range r.outOfService.In(nodes, "") {
		for pod, item := range r.onNode.In(pods, key.Name) {
			if item.Meta().Deleting() {
				r.attend(pod)
			}
		}
	}
	for node := range gone {
		for pod := range r.onNode.In(pods, node) {
			r.attend(pod)
		}
	}
	return controller.Result{}, err
}

// tooMany returns the Pods that have ended and are too many.
func (r *reconciler) tooMany(pods cache.Snapshot[*corev1.Pod]) ([]*corev1.Pod, error) {
	threshold := r.options.TerminatedPodThreshold
	if threshold <= 0 {
		return nil, nil
	}
	for state, n := range r.states.Values(pods) {
		if state != stateEnded || n <= threshold {
			continue
		}
		all, err := cache.Objects(r.states.In(pods, stateEnded))
		if err != nil {
			return nil, err
		}
		chosen := choose(all, threshold)
		r.log.Info("too many Pods have ended; those that were evicted and the oldest are removed first", "ended", n, "going", len(chosen))
		return chosen, nil
	}
	return nil, nil
}

// goneNodes returns the nodes that Pods are bound to and that are gone: out of the
// informer for long enough, and not known to the server.
func (r *reconciler) goneNodes(ctx context.Context, pods cache.Snapshot[*corev1.Pod], nodes cache.Snapshot[*corev1.Node], now time.Time) map[string]bool {
	gone := map[string]bool{}
	for _, name := range r.quarantine.look(r.missing(pods, nodes), now) {
		key := object.Key{Name: name}
		_, err := r.nodes.Server().Get(ctx, key)
		if client.AbsentAt(err, key) {
			gone[name] = true
			continue
		}
		r.quarantine.again(name)
		if err != nil {
			r.log.Warn("cannot read whether a node is gone; trying again later", "node", name, "error", err)
		}
	}
	return gone
}

// missing returns the nodes that Pods are bound to and that are not there.
func (r *reconciler) missing(pods cache.Snapshot[*corev1.Pod], nodes cache.Snapshot[*corev1.Node]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range r.onNode.Values(pods) {
			if !nodes.Get(object.Key{Name: name}).Exists() && !yield(name) {
				return
			}
		}
	}
}

func (r *reconciler) viewOf(pod *corev1.Pod) view {
	r.mu.Lock()
	v := view{surplus: r.surplus[pod.UID], nodeGone: r.gone[pod.Spec.NodeName]}
	r.mu.Unlock()
	if node, err := r.nodes.Get(object.Key{Name: pod.Spec.NodeName}); err == nil {
		v.node = node
	}
	return v
}

// remove marks a Pod as failed if it has not ended, and deletes it at once.
func (r *reconciler) remove(ctx context.Context, pod *corev1.Pod, why reason) error {
	key := object.KeyOf(pod)
	if !podstate.Ended(pod) && why != halfway {
		patch, err := client.StrategicPatch(map[string]any{
			// Of a Pod that has just ended the end is kept.
			"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
			"status":   failed(pod, why, time.Now()),
		})
		if err != nil {
			return err
		}
		_, err = r.pods.Sub("status").Patch(ctx, key, patch)
		if apierrors.IsNotFound(err) || client.Absent(err) {
			return nil // it went meanwhile, and another Pod may have its name
		}
		if err != nil {
			return fmt.Errorf("marking pod %s failed, because %s: %w", key, why, err)
		}
	}
	if deleted(pod) {
		return nil
	}
	err := r.pods.Delete(ctx, key, client.IfUID(pod.UID), client.GracePeriod(0))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // a conflict says that another Pod has its name
	case err != nil:
		return fmt.Errorf("deleting pod %s, because %s: %w", key, why, err)
	}
	r.log.Info("removed a Pod", "object", key.String(), "reason", string(why))
	return nil
}

// failed returns the change of a Pod's status.
func failed(pod *corev1.Pod, why reason, now time.Time) map[string]any {
	status := map[string]any{"phase": corev1.PodFailed, "observedGeneration": pod.Generation}
	if why == orphaned {
		// The words are an API to users.
		// Source: k8s.io/kubernetes/pkg/controller/podgc, gcOrphaned.
		status["conditions"] = []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
			ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(now),
		}}
	}
	return status
}
