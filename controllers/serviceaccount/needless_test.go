// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
)

func TestOnlyFailuresThatLeaveNothingToCreateAreForgiven(t *testing.T) {
	resource := corev1.Resource("serviceaccounts")
	terminating := apierrors.NewForbidden(resource, account, errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the account exists":       {apierrors.NewAlreadyExists(resource, account), true},
		"the namespace terminates": {terminating, true},
		"the namespace is gone":    {apierrors.NewNotFound(corev1.Resource("namespaces"), "team-a"), true},
		"a right is missing":       {apierrors.NewForbidden(resource, account, errors.New("rbac")), false},
		"the server is overloaded": {apierrors.NewTooManyRequests("later", 1), false},
		"no answer":                {errors.New("connection reset"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needless(c.err); got != c.want {
				t.Errorf("needless(%v) = %t, want %t", c.err, got, c.want)
			}
		})
	}
}

func TestNegativeWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
}
