// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"runtime"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcd serves the API servers over a unix socket in a directory of mode 0700, without
// TLS: the kernel then admits this user alone, which neither a loopback port nor a client
// certificate that lies beside it could do better, and no port can collide. With a single
// member there is no peer, so it has no peer listener at all.
type etcd struct {
	server   *embed.Etcd
	endpoint string
}

// member stands in etcd's member list, which has to name a host and a port. Nothing
// listens there: clients get the socket, and there are no peers.
var member = url.URL{Scheme: "http", Host: "127.0.0.1:1"}

// startEtcd returns when etcd answers. died is called, at most once, if etcd
// ends by itself later.
func startEtcd(ctx context.Context, dir *dataDir, logger *slog.Logger, died func(error)) (*etcd, error) {
	socket, err := dir.etcdSocket()
	if err != nil {
		return nil, err
	}
	// A killed process leaves its socket; the lock on the directory shows that it is not
	// in use.
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of an earlier etcd: %w", err)
	}

	fatal := make(chan error, 1)
	cfg := etcdConfig(dir, socket, etcdLogger(logger, fatal))
	e := &etcd{endpoint: cfg.ListenClientUrls[0].String()}

	// In a goroutine of its own, because etcd's fatal log lines end the
	// goroutine that writes them.
	started := make(chan error, 1)
	go func() {
		var err error
		e.server, err = embed.StartEtcd(cfg)
		started <- err
	}()
	select {
	case err := <-started:
		if err != nil {
			return nil, diskError(fmt.Errorf("starting etcd: %w", err))
		}
	case err := <-fatal:
		return nil, diskError(fmt.Errorf("starting etcd: %w", err))
	}

	select {
	case <-e.server.Server.ReadyNotify():
	case err := <-e.server.Err():
		return nil, errors.Join(diskError(fmt.Errorf("starting etcd: %w", err)), e.stop(ctx))
	case err := <-fatal:
		return nil, errors.Join(diskError(fmt.Errorf("starting etcd: %w", err)), e.stop(ctx))
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("starting etcd: %w", context.Cause(ctx)), e.stop(context.WithoutCancel(ctx)))
	}
	go e.watch(fatal, died)
	return e, nil
}

// watch ends when etcd has ended, whether it was stopped or not.
func (e *etcd) watch(fatal <-chan error, died func(error)) {
	select {
	case err, ok := <-e.server.Err():
		if ok {
			died(diskError(fmt.Errorf("etcd ended: %w", err)))
		}
	case err := <-fatal:
		died(diskError(fmt.Errorf("etcd ended: %w", err)))
	case <-e.server.Server.StopNotify():
		died(errors.New("etcd ended: its log says why"))
	}
}

// stop waits until etcd has ended, or ctx.
func (e *etcd) stop(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		e.server.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping etcd: %w", context.Cause(ctx))
	}
}

func etcdConfig(dir *dataDir, socket string, logger *zap.Logger) *embed.Config {
	client := url.URL{Scheme: "unix", Path: socket}
	cfg := embed.NewConfig()
	cfg.Name = "setpoint"
	cfg.Dir = dir.etcdDir()
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{member}
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = []url.URL{member}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// A member that is alone waits for up to two election timeouts before it elects
	// itself; no member can contradict it, so the wait may be short.
	cfg.TickMs, cfg.ElectionMs = 50, 250
	cfg.EnableGRPCGateway = false // no client sends it JSON
	cfg.UnsafeNoFsync = dir.temporary
	// A large write may wait for a slow disk; one line for a second is enough.
	cfg.WarningUnaryRequestDuration = time.Second
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	return cfg
}

// etcdLogger turns etcd's fatal and panicking log lines, which would end the
// process, into an error on the channel and the end of the goroutine.
func etcdLogger(logger *slog.Logger, fatal chan<- error) *zap.Logger {
	hook := fatalHook{fatal}
	return zap.New(zapCore{logger.With("component", "etcd").Handler()}, zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

type fatalHook struct{ fatal chan<- error }

func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(e.Message)
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			err = fmt.Errorf("%s: %w", e.Message, cause)
		}
	}
	select {
	case h.fatal <- err:
	default: // the first line has the cause
	}
	runtime.Goexit()
}
