// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
)

// A PodDisruptionBudget answers evictions with a Retry-After of 10 s. A worker that evicts
// need not be held for ten of them.
func TestAnEvictionCanAskForNoRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c := within(t, func(*http.Request) (*http.Response, error) {
			sent++
			return answer(http.StatusTooManyRequests, failure(http.StatusTooManyRequests, "TooManyRequests"), "Retry-After", "10"), nil
		})
		began := time.Now()
		evictions := client.Sub[*policyv1.Eviction](client.For[*corev1.Pod](c), "eviction")
		_, err := evictions.Create(t.Context(), inNS, &policyv1.Eviction{}, client.NoRetries())
		if seconds, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !ok || seconds != 10 {
			t.Errorf("the error is %v, and asks for another try after %d s: %t", err, seconds, ok)
		}
		if waited := time.Since(began); sent != 1 || waited != 0 {
			t.Errorf("it was sent %d times in %s", sent, waited)
		}
	})
}
