// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager is a process of controllers: one client, one set of informers,
// one place where they are started, watched over and stopped.
//
//	mgr, err := manager.New(config)
//	pods := cache.Informer[*corev1.Pod](mgr)
//	err = mgr.Add(controller.New("pod-logger", reconcile, controller.For(pods)))
//	...
//	return mgr.Run(ctx)
//
// [Manager.Run] waits for the server, starts the informers, and starts each controller as
// soon as the informers that it reads have a first state. A controller whose informers
// cannot be read, because a right is missing or a kind is not served, delays no other
// controller: the log names once what is missing, and the controller starts when it is
// there.
//
// All controllers work with the manager's credentials, except those on the host that
// [Manager.As] returns, which write and record events with their own.
//
// # Leading
//
// With [LeaderElection], several managers agree by a Lease on the one that works. The
// informers of all of them run, and their loops keep the keys that there would be to work on
// ([controller.Loop]'s StandBy). So the next leader needs one event, one write, and what the last holder
// wrote to appear in its informers. Then its loops begin with what changed within the last
// minute. [Manager.Elected] says when. A write
// through [Manager.Client] is sent only if the lease is held for certain at that moment
// by two clocks, and ends with the lease at the latest; it is a *client.NotSentError
// otherwise. A manager whose lease is over returns from Run with an error. With
// [SecondLease], some of its parts need another lease too, which another program may hold.
//
// # Stopping
//
// When Run's context ends, controllers finish what they have begun, then the events they
// recorded are written, then the lease is released, then the informers stop. Run returns
// when nothing of the manager runs any more, or after [ShutdownTimeout], with an error that
// names what has not ended and the keys it works on.
//
// # Health, metrics and debug pages
//
// [Serve] serves /healthz, /livez, /readyz, /metrics, /debug/controllers and /debug/informers:
// without TLS on loopback addresses alone, and elsewhere for users whom the API server allows
// it. Package serving does that for programs without a manager too.
package manager
