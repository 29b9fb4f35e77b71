// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/setpoint-io/setpoint/controller/podwriter"
)

// Reasons of Events and of the condition Progressing. Those of created and deleted Pods are in
// package podwriter.
// Source: k8s.io/kubernetes/pkg/controller/statefulset.
const (
	successfulCreate      = podwriter.SuccessfulCreate
	failedCreate          = podwriter.FailedCreate
	successfulUpdate      = "SuccessfulUpdate"
	failedUpdate          = "FailedUpdate"
	conflictingController = "ConflictingController"
	unknownStrategy       = "UnknownStrategy"

	recreateInProgress = "RecreateInProgress"
	recreateCompleted  = "RecreateCompleted"

	// replacingNeverReady is ours: upstream does not replace such Pods.
	replacingNeverReady = "ReplacingNeverReadyPod"
)

// deciding is the action of Events that a decision has.
const deciding = "Reconcile"

// podDone and podFailed are the texts about Pods.
func podDone(verb, pod, set string) string {
	return fmt.Sprintf("%s Pod %s in StatefulSet %s successful", verb, pod, set)
}

func podFailed(verb, pod, set string, err error) string {
	return fmt.Sprintf("%s Pod %s in StatefulSet %s failed error: %v", verb, pod, set, err)
}

// claimDone and claimFailed are the texts about claims.
func claimDone(claim, pod, set string) string {
	return fmt.Sprintf("Create Claim %s Pod %s in StatefulSet %s success", claim, pod, set)
}

func claimFailed(claim, pod, set string, err error) string {
	return fmt.Sprintf("Create Claim %s for Pod %s in StatefulSet %s failed error: %v", claim, pod, set, err)
}

// podMessage returns the text of an Event about a Pod that the writer creates or deletes.
func podMessage(reason string, owner podwriter.Owner, pod *corev1.Pod, err error) string {
	set := owner.Object.GetName()
	switch reason {
	case podwriter.SuccessfulCreate:
		return podDone("Create", pod.Name, set)
	case podwriter.FailedCreate:
		return podFailed("Create", pod.Name, set, tooLong(pod, err))
	case podwriter.SuccessfulDelete:
		return podDone("Delete", pod.Name, set)
	default:
		return podFailed("Delete", pod.Name, set, err)
	}
}

// tooLong adds to the refusal of a Pod what to do about the name of its StatefulSet. The API server
// accepts a name of 63 characters, and then refuses the labels of every Pod: they have the name with
// an ordinal or a hash.
func tooLong(pod *corev1.Pod, err error) error {
	if !apierrors.IsInvalid(err) || max(len(pod.Name), len(revisionOf(pod))) <= content.LabelValueMaxLength {
		return err
	}
	return fmt.Errorf("%w; the name of the StatefulSet is too long for the labels of its Pods: create it with a name of %d characters at most", err, longestName)
}

// longestName is how long the name of a StatefulSet may be, so that a dash and a hash of ten
// characters fit into a label.
const longestName = content.LabelValueMaxLength - 11
