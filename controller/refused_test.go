// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/runs"
)

// A refused write that goes on until somebody else acts is a reason, without a call of the controller.
func TestRefusalsAreReasons(t *testing.T) {
	for _, c := range []struct {
		name, message  string
		code           int32
		reason         metav1.StatusReason
		causes         []metav1.StatusCause
		want, sentence string
	}{
		{"a missing right", `pods "x" is forbidden: User "system:serviceaccount:kube-system:c" cannot create resource "pods" in API group "" in the namespace "ns"`,
			http.StatusForbidden, metav1.StatusReasonForbidden, nil,
			controller.RightMissing, "the user system:serviceaccount:kube-system:c may not create Pod ns/x (until the right is granted)"},
		{"a quota", `pods "x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2`,
			http.StatusForbidden, metav1.StatusReasonForbidden, nil,
			controller.QuotaExceeded, "the ResourceQuota few leaves no room to create Pod ns/x: requested pods=1, used pods=2 of pods=2 (until ResourceQuota ns/few changes)"},
		{"a missing account", `pods "x" is forbidden: error looking up service account ns/robot: serviceaccount "robot" not found`,
			http.StatusForbidden, metav1.StatusReasonForbidden, nil,
			controller.ServiceAccountMissing, "the ServiceAccount robot does not exist (until ServiceAccount ns/robot changes)"},
		{"a namespace that goes", `pods "x" is forbidden: unable to create new content in namespace ns because it is being terminated`,
			http.StatusForbidden, metav1.StatusReasonForbidden, []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}},
			controller.NamespaceTerminating, "the namespace ns is being deleted or does not exist, so nothing can be created in it (until the namespace exists again)"},
		{"a webhook that denies", `admission webhook "no.example.com" denied the request: never`,
			http.StatusBadRequest, metav1.StatusReasonBadRequest, nil,
			controller.AdmissionDenied, "the admission webhook no.example.com does not allow to create Pod ns/x (until the webhook allows it)"},
		{"a policy that denies", `pods "x" is forbidden: ValidatingAdmissionPolicy 'small' with binding 'all' denied request: too large`,
			http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, nil,
			controller.AdmissionDenied, "the ValidatingAdmissionPolicy small does not allow to create Pod ns/x (until the policy allows it)"},
		{"a webhook that is down", `Internal error occurred: failed calling webhook "no.example.com": failed to call webhook: Post "https://x": refused`,
			http.StatusInternalServerError, metav1.StatusReasonInternalError, nil,
			controller.WebhookFailed, "the admission webhook no.example.com cannot be called, so the server refuses a write (until the webhook answers, or its configuration is removed)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				record := newRecord(t)
				b.line.to().Faults.RefuseNext(1, "create", &metav1.Status{Status: metav1.StatusFailure, Code: c.code, Reason: c.reason, Message: c.message,
					Details: &metav1.StatusDetails{Causes: c.causes}})
				stop := b.start(controller.New("c", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
					_, err := client.For[*corev1.Pod](b.client).Create(ctx, pod("x"))
					return controller.Result{}, controller.Terminal(err)
				}, controller.For(b.pods), controller.Runs(record), quiet()))
				defer stop()
				synctest.Wait()
				present := record.Present(runs.Query{Controller: "c", Key: "ns/parent"})
				if len(present) != 1 || len(present[0].Reasons) != 1 {
					t.Fatalf("present is %+v, want one reason", present)
				}
				if got := present[0].Reasons[0]; got.Code != c.want || got.String() != c.sentence {
					t.Errorf("the reason is %s: %s; want %s: %s", got.Code, got, c.want, c.sentence)
				}
			})
		})
	}
}
