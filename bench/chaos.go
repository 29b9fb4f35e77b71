// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// The environment that tells the test of a campaign what to do.
const (
	chaosEvents = "SETPOINT_CHAOS_EVENTS"
	chaosSeed   = "SETPOINT_CHAOS_SEED"
)

// runChaos runs TestChaos. A campaign lasts days of pauses, which pass in seconds in
// a testing/synctest bubble, with the pauses of both candidates as they are; and
// such a bubble needs a test.
func runChaos(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(out)
	events := flags.Uint64("events", 100_000, "changes in each campaign")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "of the history and the faults")
	only := flags.String("only", "", "campaigns whose names match, such as /pods/ or /as_documented/client-go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=0", "-v", "-run", "^TestChaos$"+*only, ".")
	command.Env = append(os.Environ(), chaosEvents+"="+strconv.FormatUint(*events, 10), chaosSeed+"="+strconv.FormatUint(*seed, 10))
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("running campaigns: %w", err)
	}
	return nil
}
