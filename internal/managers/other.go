// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/announce"
)

// other is a manager of another process. It is safe for concurrent use.
type other struct {
	announce.Manager
	get gather.Get

	mu     sync.Mutex
	failed error     // of the last request
	until  time.Time // it is not asked again before
}

// silence is how long a manager that did not answer in time is not asked. One that refuses the connection at once is asked
// each time.
const (
	silence = 10 * time.Second
	slow    = 2 * time.Second
)

func newOther(m announce.Manager, config *rest.Config) (*other, error) {
	if config == nil {
		config = &rest.Config{}
	}
	get, err := m.Pages(config)
	return &other{Manager: m, get: get}, err
}

// read reads a page of the manager.
func (o *other) read(ctx context.Context, path string) (code int, body []byte, err error) {
	if err := o.silent(); err != nil {
		return 0, nil, err
	}
	began := time.Now()
	code, body, err = o.get(ctx, path)
	took := time.Since(began)
	if err != nil && ctx.Err() != nil && took < slow {
		return code, body, err // the caller has gone, or has no time left: that says nothing about the manager
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = err
	if err != nil && took >= slow {
		o.until = time.Now().Add(silence)
	}
	return code, body, err
}

// silent returns the failure of a manager that is not asked for now.
func (o *other) silent() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Now().Before(o.until) {
		return o.failed
	}
	return nil
}

// failure returns that of the last request; nil if there was none.
func (o *other) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

func (o *other) isSilent() bool { return o.failure() != nil }
