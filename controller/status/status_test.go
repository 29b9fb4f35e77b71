// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/status"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAConditionThatIsSaidAgainIsNoChange(t *testing.T) {
	var list []metav1.Condition
	if !status.SetCondition(&list, 1, "Ready", metav1.ConditionFalse, "Starting", "0 of 2") {
		t.Error("the first one changed nothing")
	}
	list[0].LastTransitionTime = metav1.Unix(1, 0)
	if status.SetCondition(&list, 1, "Ready", metav1.ConditionFalse, "Starting", "0 of 2") {
		t.Error("the same again changed something")
	}
	if !status.SetCondition(&list, 2, "Ready", metav1.ConditionFalse, "Starting", "1 of 2") || list[0].ObservedGeneration != 2 {
		t.Errorf("another message and generation: %+v", list[0])
	}
	if list[0].LastTransitionTime != metav1.Unix(1, 0) {
		t.Error("the time of the transition changed without one")
	}
	if !status.SetCondition(&list, 2, "Ready", metav1.ConditionTrue, "Serving", "2 of 2") || list[0].LastTransitionTime == metav1.Unix(1, 0) {
		t.Errorf("a transition: %+v", list[0])
	}
	if len(list) != 1 {
		t.Errorf("there are %d conditions of one type", len(list))
	}
}

func TestAMessageThatIsTooLongIsCutBetweenCharacters(t *testing.T) {
	var list []metav1.Condition
	status.SetCondition(&list, 1, "Ready", metav1.ConditionFalse, "Failed", strings.Repeat("ß", 20000))
	message := list[0].Message
	if len(message) > 32768 || len(message) < 32760 || !utf8.ValidString(message) || !strings.HasSuffix(message, "ß...") {
		t.Errorf("the message has %d bytes and ends in %q", len(message), message[len(message)-8:])
	}
}

func TestAStatusIsWrittenIfItChanged(t *testing.T) {
	server := fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	pods := client.For[*corev1.Pod](c)
	was, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	now := was.DeepCopy()
	if err := status.Write(t.Context(), pods, was, now); err != nil {
		t.Fatal(err)
	}
	if version := server.Get(object.KeyOf(was)).GetResourceVersion(); version != was.ResourceVersion {
		t.Errorf("a status that did not change was written: version %s is now %s", was.ResourceVersion, version)
	}
	now.Status.Phase = corev1.PodRunning
	if err := status.Write(t.Context(), pods, was, now); err != nil {
		t.Fatal(err)
	}
	if o, err := pods.Get(t.Context(), object.KeyOf(was)); err != nil || o.Status.Phase != corev1.PodRunning {
		t.Errorf("the status is %v (%v)", o, err)
	}
	now.Status.Phase = corev1.PodFailed // from a version that is not the newest any more
	if err := status.Write(t.Context(), pods, was, now); !apierrors.IsConflict(err) {
		t.Errorf("writing over a newer version: %v, want a conflict", err)
	}
}
