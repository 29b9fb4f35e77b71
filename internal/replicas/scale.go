// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// The reasons of events and conditions. Users match on them.
// Source: k8s.io/kubernetes/pkg/controller, controller_utils.go.
const (
	successfulCreate = "SuccessfulCreate"
	failedCreate     = "FailedCreate"
	successfulDelete = "SuccessfulDelete"
	failedDelete     = "FailedDelete"
)

// What was tried, in events.
const (
	creating = "CreatePod"
	deleting = "DeletePod"
)

// deletesAtOnce bounds how many deletes of one owner are under way. One connection
// to an API server carries 100 requests (its default of MaxConcurrentStreams), and
// others want to be heard as well.
const deletesAtOnce = 64

// plan says how many Pods to create, or, below zero, to delete, so that of have
// there are want; at most burst in one run.
func plan(want, have, burst int) int { return max(-burst, min(burst, want-have)) }

// scale creates or deletes Pods, and returns what there is then.
func (k *keeper) scale(ctx context.Context, snapshot cache.Snapshot[*corev1.Pod], d *demand, mine claimed) (claimed, *failure) {
	switch n := plan(d.Replicas, len(mine.active), k.burst); {
	case n > 0:
		return k.create(ctx, snapshot, d, mine, n)
	case n < 0:
		return k.remove(ctx, snapshot, d, mine, -n)
	}
	return mine, nil
}

// create makes n more Pods.
func (k *keeper) create(ctx context.Context, snapshot cache.Snapshot[*corev1.Pod], d *demand, mine claimed, n int) (claimed, *failure) {
	pod := fromTemplate(d)
	used := func(name string) bool {
		return snapshot.Get(object.Key{Namespace: d.key.Namespace, Name: name}).Exists()
	}
	names := k.names.take(d.key, d.owner.GetUID(), n, pod.GenerateName, k.now(), used)
	made := make([]*corev1.Pod, n)
	_, err := controller.SlowStart(ctx, n, 1, func(ctx context.Context, i int) error {
		var err error
		made[i], err = k.createOne(ctx, d, pod, names[i])
		return err
	})
	for _, pod := range made {
		if pod != nil && podstate.Active(pod) {
			mine.active = append(mine.active, pod)
		}
	}
	// In a namespace that goes or is gone no Pod will ever be made. That is as it
	// should be.
	if err == nil || client.NamespaceGone(err) {
		return mine, nil
	}
	return mine, &failure{reason: failedCreate, cause: err}
}

// nameTries is how often another name is drawn where somebody else's Pod has it.
// Source: k8s.io/apiserver/pkg/registry/generic/registry,
// maxNameGenerationCreateAttempts.
const nameTries = 8

// createOne makes one Pod, as template but for its name.
func (k *keeper) createOne(ctx context.Context, d *demand, template *corev1.Pod, name string) (*corev1.Pod, error) {
	pods := client.For[*corev1.Pod](k.client)
	for try := 1; ; try++ {
		pod := *template // only read, but for the name
		pod.Name = name
		// What the server adds to a new Pod's spec and status changes nothing that is
		// counted here.
		made, err := pods.Create(ctx, &pod, client.MetadataAnswer())
		if err == nil {
			k.names.made(d.key, name)
			k.events.Normal(d.owner, d.kind, successfulCreate, creating, "Created pod: %s", name)
			pod.ObjectMeta = made.ObjectMeta
			return &pod, nil
		}
		if !apierrors.IsAlreadyExists(err) || try == nameTries {
			k.keepName(d, name, err)
			if !client.NamespaceGone(err) && ctx.Err() == nil {
				k.events.Warning(d.owner, d.kind, failedCreate, creating, "Error creating: %v", err)
			}
			return nil, err
		}
		// An earlier create of ours that seemed to have failed, or somebody
		// else's Pod.
		there, err := pods.Get(ctx, object.KeyOf(&pod))
		if err != nil {
			k.keepName(d, name, err)
			return nil, fmt.Errorf("finding out whose Pod %s is: %w", object.KeyOf(&pod), err)
		}
		if metav1.IsControlledBy(there, d.owner) {
			// Ours. The name stays open until the cache shows the Pod: as long as
			// it is not seen, it would be made once more.
			k.keepName(d, name, nil)
			return there, nil
		}
		k.names.made(d.key, name)
		name = drawName(template.GenerateName)
	}
}

// keepName has a later run use a name again. A refusal says that a request was not
// carried out; every other failure leaves open that it will be.
func (k *keeper) keepName(d *demand, name string, err error) {
	var until time.Time
	var status apierrors.APIStatus
	if err != nil && (!errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError) {
		until = k.now().Add(dueTime)
	}
	k.names.keep(d.key, d.owner.GetUID(), name, until)
}

// remove deletes n of the active Pods.
func (k *keeper) remove(ctx context.Context, snapshot cache.Snapshot[*corev1.Pod], d *demand, mine claimed, n int) (claimed, *failure) {
	victims := mine.active
	if n < len(victims) {
		victims = controller.Surplus(victims, n, controller.PodRank(controller.PodRanking{
			Now: k.now(), Neighbours: k.neighbours(snapshot, d), IgnoreCost: k.ignoreDeletionCost,
		}))
	}
	deleted := make([]bool, n)
	streams := min(n, deletesAtOnce)
	errs := controller.Batch(ctx, streams, func(ctx context.Context, first int) error {
		var failed error
		for i := first; i < n; i += streams {
			err := k.deleteOne(ctx, d, victims[i])
			deleted[i] = err == nil
			if failed == nil {
				failed = err
			}
		}
		return failed
	})
	gone := make(map[*corev1.Pod]bool, n)
	for i, pod := range victims {
		if deleted[i] {
			gone[pod] = true
			if endsSlowly(pod) {
				mine.terminating++
			}
		}
	}
	mine.active = slices.DeleteFunc(mine.active, func(pod *corev1.Pod) bool { return gone[pod] })
	if len(errs) > 0 {
		return mine, &failure{reason: failedDelete, cause: errs[0]}
	}
	return mine, nil
}

// deleteOne deletes one Pod, and no other under its name.
func (k *keeper) deleteOne(ctx context.Context, d *demand, pod *corev1.Pod) error {
	err := client.For[*corev1.Pod](k.client).Delete(ctx, object.KeyOf(pod), client.IfUID(pod.UID))
	switch {
	case err == nil:
		k.events.Normal(d.owner, d.kind, successfulDelete, deleting, "Deleted pod: %s", pod.Name)
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // it is gone; a conflict says that another one has its name
	}
	if ctx.Err() == nil {
		k.events.Warning(d.owner, d.kind, failedDelete, deleting, "Error deleting: %v", err)
	}
	return fmt.Errorf("deleting Pod %s: %w", object.KeyOf(pod), err)
}

// endsSlowly reports whether an active Pod that is deleted stays for a while.
// Source: k8s.io/kubernetes/pkg/registry/core/pod, CheckGracefulDelete.
func endsSlowly(pod *corev1.Pod) bool {
	if len(pod.Finalizers) > 0 {
		return true
	}
	grace := pod.Spec.TerminationGracePeriodSeconds
	return pod.Spec.NodeName != "" && grace != nil && *grace != 0
}

// neighbours counts the active Pods of all siblings on each node.
func (k *keeper) neighbours(snapshot cache.Snapshot[*corev1.Pod], d *demand) map[string]int {
	on := map[string]int{}
	for _, uid := range d.siblings() {
		for key, item := range snapshot.ControlledBy(uid) {
			pod, err := item.Object()
			if err == nil && key.Namespace == d.key.Namespace && podstate.Active(pod) {
				on[pod.Spec.NodeName]++
			}
		}
	}
	return on
}
