// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/worlds"
	"github.com/setpoint-io/setpoint/object"
)

// reconcile brings one volume to the nodes where it is to be, and away from the others.
func (r *reconciler) reconcile(ctx context.Context, req controller.RequestOf[corev1.UniqueVolumeName]) (controller.Result, error) {
	if !ours(req.Key) {
		return controller.Result{}, nil
	}
	v, err := r.viewOf(req.Key)
	if err != nil {
		return controller.Result{}, err
	}
	p := decide(v)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	for _, n := range p.notes {
		r.say(v, n)
	}
	again, err := r.carryOut(ctx, v, p)
	if err != nil {
		return controller.Result{}, err
	}
	r.forget(v)
	if again {
		return controller.Result{After: time.Millisecond}, nil
	}
	if !p.again.IsZero() {
		return controller.Result{After: max(time.Until(p.again), time.Millisecond)}, nil
	}
	return controller.Result{}, nil
}

// carryOut carries out the steps of a plan, all of them if some fail. It reports whether to decide
// again at once.
func (r *reconciler) carryOut(ctx context.Context, v view, p plan) (again bool, err error) {
	var errs []error
	for _, s := range p.steps {
		at := v.at(s.node)
		decideAgain, err := r.do(ctx, v, at, s)
		again = again || decideAgain
		if err != nil {
			errs = append(errs, err)
		}
	}
	return again, errors.Join(errs...)
}

func (v view) at(node string) *place {
	for i := range v.places {
		if v.places[i].node == node {
			return &v.places[i]
		}
	}
	return nil
}

// do carries out a step. again says that the plan has to be made again at once.
func (r *reconciler) do(ctx context.Context, v view, at *place, s step) (again bool, err error) {
	where := spot{v.unique, at.node}
	switch s.do {
	case stepKeep:
		r.world.Update(where, func(m *memory) {
			if m.unreported = at.unreported(); !m.wanted {
				m.wanted, m.unwanted, m.said = true, time.Time{}, nil
			}
		})
		if at.unreported() {
			r.attendNode(at.node)
		}
	case stepUnwanted:
		r.world.Update(where, func(m *memory) { m.wanted, m.unwanted = false, v.now })
	case stepCheck:
		if r.world.Begin(where, opDetach, 0).State == worlds.Free {
			r.check(where, check{stage: checkAsked, force: s.why})
		}
	case stepCancel:
		r.world.Cancel(where, opDetach)
		r.check(where, check{})
		return true, nil
	case stepGiveUp:
		r.world.Cancel(where, opAttach)
		return true, nil
	case stepRefused:
		r.world.End(where, opDetach, worlds.NotDone(errInUse))
		r.check(where, check{})
		return true, nil
	case stepDetach:
		return r.detach(ctx, v, at, s.why)
	case stepAttach:
		return r.attach(ctx, v, at)
	case stepAwait:
		r.world.Begin(where, opAttach, r.options.OperationLimit)
	case stepAttached:
		r.world.Update(where, func(m *memory) { m.said, m.failed = nil, false })
		r.endAttach(&v, where, nil)
		r.tell(at.users, false, reasonAttached, attachSucceeded(v))
		r.log.Info("attached", "volume", v.name, "node", at.node)
	case stepFailed:
		r.world.Update(where, func(m *memory) { m.failed = true })
		r.endAttach(&v, where, s.err)
		r.tell(at.users, true, reasonFailedAttach, attachFailed(v, s.err))
		r.log.Warn("attaching has failed; it is tried again", "volume", v.name, "node", at.node, "error", s.err)
		return true, nil
	}
	return false, nil
}

var errInUse = errors.New("volume is still in use by node, according to Node status")

// check changes how far the check of a place is, and requests a run of its node, which checks and
// writes its status.
func (r *reconciler) check(where spot, c check) {
	r.world.Update(where, func(m *memory) { m.check = c })
	r.attendNode(where.node)
}

// attach creates the VolumeAttachment, by which the driver attaches the volume.
func (r *reconciler) attach(ctx context.Context, v view, at *place) (again bool, err error) {
	where := spot{v.unique, at.node}
	if r.world.Begin(where, opAttach, r.options.OperationLimit).State != worlds.Free {
		return true, nil
	}
	if v.driver == "" {
		r.world.Update(where, func(m *memory) { m.attached = true })
		r.attendNode(at.node)
		return true, nil
	}
	_, err = r.attachments.Create(ctx, newAttachment(v, at.node))
	switch {
	case err == nil:
		r.log.Info("attaching", "volume", v.name, "node", at.node, "driver", v.driver, "attachment", attachmentOf(v.unique, at.node))
		return true, nil
	case apierrors.IsAlreadyExists(err):
		return true, nil // the informer shows it soon
	}
	failure := fmt.Errorf("kubernetes.io/csi: attacher.Attach failed: %w", err)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		failure = worlds.NotDone(failure)
	}
	r.endAttach(&v, where, failure)
	r.tell(at.users, true, reasonFailedAttach, attachFailed(v, failure))
	return false, fmt.Errorf("attaching %s to node %s: %w", v.name, at.node, err)
}

// endAttach ends the operation, with its error if it has failed.
func (r *reconciler) endAttach(v *view, where spot, err error) {
	if op, running := r.world.Running(where); running && op.Name == opAttach {
		r.took(&v.source, opAttach, op.Since, err)
	}
	r.world.End(where, opAttach, err)
}

// newAttachment returns the VolumeAttachment of a volume at a node.
func newAttachment(v view, node string) *storagev1.VolumeAttachment {
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentOf(v.unique, node)},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Attacher: v.driver},
	}
	if v.inline != nil {
		va.Spec.Source.InlineVolumeSpec = v.inline
	} else {
		va.Spec.Source.PersistentVolumeName = &v.name
	}
	return va
}

// detach deletes the VolumeAttachment, by which the driver detaches the volume. The check stays
// passed until the informer shows that: the status of the Node must not name the volume again.
func (r *reconciler) detach(ctx context.Context, v view, at *place, why force) (again bool, err error) {
	where, began := spot{v.unique, at.node}, time.Now()
	if at.attachment != nil {
		err = r.attachments.Delete(ctx, object.Key{Name: at.attachment.Name}, client.IfUID(at.attachment.UID))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		r.took(&v.source, opDetach, began, err)
		r.world.End(where, opDetach, err)
		r.check(where, check{})
		return false, fmt.Errorf("detaching %s from node %s: %w", v.name, at.node, err)
	}
	r.world.End(where, opDetach, nil)
	if at.attachment == nil {
		r.took(&v.source, opDetach, began, nil)
	}
	r.world.Update(where, func(m *memory) {
		m.attached = false
		if at.attachment != nil && m.detaching.IsZero() {
			m.detaching = began
		}
	})
	if why == forceNone {
		r.log.Info("detaching", "volume", v.name, "node", at.node)
	} else {
		r.forced.count(why)
		r.log.Warn("detaching by force", "volume", v.name, "node", at.node, "reason", string(why))
	}
	return false, nil
}

// forget removes the places of which there is nothing to remember.
func (r *reconciler) forget(v view) {
	for i := range v.places {
		at := &v.places[i]
		where := spot{v.unique, at.node}
		m, _ := r.world.Actual(where)
		if at.wanted() || at.exists() || m.attached || m.check.stage == checkPassed && at.reported {
			continue
		}
		if _, running := r.world.Running(where); running {
			continue
		}
		r.spots.remove(where) // first, so that no event of the Node remembers the place again
		r.world.Forget(where)
	}
}

// tell records an Event for each of some Pods.
func (r *reconciler) tell(pods []*corev1.Pod, warning bool, reason, text string) {
	for _, pod := range pods {
		if warning {
			r.recorder.Warning(pod, reason, actionAttach, "%s", text)
		} else {
			r.recorder.Normal(pod, reason, actionAttach, "%s", text)
		}
	}
}

// say records an Event about a wait, unless it was recorded for the Pod before.
func (r *reconciler) say(v view, n note) {
	fresh := false
	r.world.Update(spot{v.unique, n.place.node}, func(m *memory) {
		if fresh = m.said[n.pod.UID] != n.text; !fresh {
			return
		}
		said := map[types.UID]string{}
		maps.Copy(said, m.said) // a view may have the map
		said[n.pod.UID] = n.text
		m.said = said
	})
	if fresh {
		r.recorder.Record(n.pod, n.planned())
	}
}
