// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/setpoint-io/setpoint/internal/loan"
)

// cleanTimeout bounds how long a cluster is cleaned. One that takes longer is discarded,
// and the next package starts another.
const cleanTimeout = 20 * time.Second

// borrowed is a cluster of the lender that runs the tests of all packages.
type borrowed struct {
	cluster *Cluster
	loan    *loan.Loan
	before  pristine
}

// lenderFor returns the address of the lender, or "" if there is none, or none that has
// such control planes.
func lenderFor(o Options) string {
	if o.Restartable || o.Servers > 1 || len(o.FeatureGates) > 0 || len(o.RuntimeConfig) > 0 {
		return ""
	}
	return os.Getenv(loan.Variable)
}

func borrow(ctx context.Context, lender, dir string, o Options) (*borrowed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	kind := loan.Kind{Nodes: o.Nodes, State: "untainted"}
	if o.Bare {
		kind.State = "bare"
	}
	l, err := loan.Borrow(ctx, lender, kind)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		options: o, dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig"),
		endpoints: l.Endpoints, pid: l.Pid,
	}
	b := &borrowed{cluster: c, loan: l}
	if err = c.prepare(ctx); err == nil {
		b.before, err = record(ctx, c.Client)
	}
	if err != nil {
		return nil, errors.Join(err, l.Discard(err.Error()))
	}
	return b, nil
}

// end gives the control plane back. It is only lent again if the tests have passed and
// the cluster is as it was before them.
func (b *borrowed) end(passed bool) error {
	if !passed {
		return b.loan.Discard(program() + " failed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if err := b.before.restore(ctx, b.cluster.Client); err != nil {
		// The result of the tests stands: the lender starts another one.
		return b.loan.Discard(program() + ": " + err.Error())
	}
	return b.loan.Return()
}

// program is the name of the test binary, which is that of the package.
func program() string { return filepath.Base(os.Args[0]) }
