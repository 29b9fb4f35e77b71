// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
)

// schedulerRun is Kubernetes' scheduler without what only a process of its own
// needs: no serving port, and no leader election, whose end would end the
// process.
type schedulerRun struct {
	cancel context.CancelFunc
	done   chan struct{} // nil until it runs, closed when it has ended

	config    *config.CompletedConfig
	scheduler *scheduler.Scheduler
	ctx       context.Context // the run's; its end ends every goroutine
}

// buildScheduler prepares a scheduler with the kubeconfig of the API server. It makes no
// request yet.
func buildScheduler(kubeconfig string) (*schedulerRun, error) {
	buildMu.Lock()
	defer buildMu.Unlock()
	o := options.NewOptions()
	o.SecureServing.BindPort = 0
	for _, f := range []struct{ set, name, value string }{
		{"leader election", "leader-elect", "false"},
		{"deprecated", "kubeconfig", kubeconfig},
		// The default of 50 requests a second shields API servers that many
		// clients share. Here it would be the bottleneck of every test.
		{"deprecated", "kube-api-qps", "5000"},
		{"deprecated", "kube-api-burst", "10000"},
	} {
		if err := o.Flags.FlagSet(f.set).Set(f.name, f.value); err != nil {
			return nil, fmt.Errorf("starting kube-scheduler: setting %s: %w", f.name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cc, sched, err := app.Setup(ctx, o)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting kube-scheduler: %w", err)
	}
	return &schedulerRun{cancel: cancel, config: cc, scheduler: sched, ctx: ctx}, nil
}

// start returns when the scheduler's caches are filled and it schedules.
func (s *schedulerRun) start(ctx context.Context) error {
	s.config.EventBroadcaster.StartRecordingToSink(s.ctx.Done())
	s.config.InformerFactory.Start(s.ctx.Done())
	s.config.DynInformerFactory.Start(s.ctx.Done())
	s.config.InformerFactory.WaitForCacheSync(ctx.Done())
	s.config.DynInformerFactory.WaitForCacheSync(ctx.Done())
	if err := s.scheduler.WaitForHandlersSync(ctx); err != nil {
		return fmt.Errorf("waiting for kube-scheduler: %w", context.Cause(ctx))
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.scheduler.Run(s.ctx)
	}()
	return nil
}

// stop ends the scheduler, started or not.
func (s *schedulerRun) stop(ctx context.Context) error {
	s.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if s.done != nil {
			<-s.done
		}
		s.config.EventBroadcaster.Shutdown()
		s.config.InformerFactory.Shutdown()
		s.config.DynInformerFactory.Shutdown()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping kube-scheduler: %w", context.Cause(ctx))
	}
}
