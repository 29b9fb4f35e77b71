// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/setpoint-io/setpoint/client"
)

// rateLimit is how many requests a client may send. It is off by default: the server has
// priority and fairness, which knows the requests of all clients.
type rateLimit struct {
	perSecond float32
	burst     int32
}

func (l *rateLimit) flags(flags *pflag.FlagSet) {
	flags.Float32Var(&l.perSecond, "kube-api-qps", 0, "how many requests a client sends in a second, watches not counted; with 0 or less as many as the server takes")
	// Source of the default: k8s.io/kubernetes/pkg/controller/apis/config/v1alpha1.
	flags.Int32Var(&l.burst, "kube-api-burst", 30, "how many requests it may send at once, where --kube-api-qps is set")
}

// check returns what is wrong with the limit. Without one the burst does not matter.
func (l *rateLimit) check() error {
	if l.perSecond > 0 && l.burst < 1 {
		return fmt.Errorf("--kube-api-burst=%d: want 1 or more where --kube-api-qps is set", l.burst)
	}
	return nil
}

// limit has clients made of config keep to the limit, each for itself: what renews the
// lease does not wait for controllers.
func (l *rateLimit) limit(config *rest.Config) {
	if !(l.perSecond > 0) { // none, or no number
		return
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &limited{next: next, limiter: flowcontrol.NewTokenBucketRateLimiter(l.perSecond, int(l.burst))}
	})
}

type limited struct {
	next    http.RoundTripper
	limiter flowcontrol.RateLimiter
}

// RoundTrip implements http.RoundTripper. As with client-go, watches do not count.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if watch := r.URL.Query().Get("watch"); watch != "true" && watch != "1" {
		if err := l.limiter.Wait(r.Context()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // as a RoundTripper must
			}
			return nil, &client.NotSentError{Cause: fmt.Errorf("waiting for --kube-api-qps: %w", err)}
		}
	}
	return l.next.RoundTrip(r)
}
