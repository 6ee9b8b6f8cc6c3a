#Requires -Version 5.1
#Requires -PSEdition Desktop
#Requires -RunAsAdministrator
<#
.SYNOPSIS
    Records how a queue manager of Windows and msmqwire exchange messages, in one folder.

.DESCRIPTION
    Nothing of msmqwire has met a queue manager of Windows. This script makes the folder with which that can be checked;
    msmqwire's own tests replay a made-up folder of the same form. It needs Windows PowerShell 5.1 as administrator, the
    feature "Message Queuing", and a second computer with msmqwire, since both listen on TCP port 1801.

    1. On the second computer:

         msmqwire receive --listen 0.0.0.0 --store incoming -o rows --insecure-nacks --queue 'private$\recorded' `
             --queue 'private$\recorded_tx' --transactional 'private$\recorded_tx'

    2. Here:

         .\record.ps1 -Receiver 192.0.2.10 -Folder C:\recorded

    3. On the second computer, when this script says so (it names the queues of this computer):

         msmqwire send 'DIRECT=TCP:192.0.2.20\private$\recorded' --recoverable --rows < replies.jsonl
         msmqwire send 'DIRECT=TCP:192.0.2.20\private$\recorded_tx' --transactional --store outgoing --rows < replies.jsonl

       where replies.jsonl is the file of that name in the folder.

    4. Copy the folder rows of the second computer into the folder, and compare:

         python examples/windows/compare.py FOLDER

.PARAMETER Receiver
    The IPv4 address of the second computer.

.PARAMETER Folder
    A new folder.

.PARAMETER Seconds
    How long to wait for acknowledgments, and for the messages of the second computer.
#>
[CmdletBinding()]
param(
    [Parameter(Mandatory)] [ipaddress] $Receiver,
    [Parameter(Mandatory)] [string] $Folder,
    [int] $Seconds = 60
)

$ErrorActionPreference = 'Stop'
Set-StrictMode -Version 3.0
Add-Type -AssemblyName System.Messaging

$Plain, $Transactional, $Admin = '.\private$\recorded', '.\private$\recorded_tx', '.\private$\recorded_admin'
$Began = Get-Date
$Utf8 = [Text.UTF8Encoding]::new($false)
New-Item -ItemType Directory -Path $Folder | Out-Null
$Folder = (Resolve-Path $Folder).Path

function Write-Rows([string] $Name, [object[]] $Rows) {
    $lines = @($Rows | Where-Object { $null -ne $_ } | ForEach-Object { ConvertTo-Json $_ -Compress })
    [IO.File]::WriteAllLines((Join-Path $Folder $Name), [string[]] $lines, $Utf8)
}

function New-Queue([string] $Path, [bool] $IsTransactional) {
    if ([Messaging.MessageQueue]::Exists($Path)) {
        [Messaging.MessageQueue]::Delete($Path)
    }
    $queue = [Messaging.MessageQueue]::Create($Path, $IsTransactional)
    # Messages of msmqwire name no user: Windows takes them for those of ANONYMOUS LOGON, whose name depends on its language
    $anonymous = [Security.Principal.SecurityIdentifier]::new('S-1-5-7').Translate([Security.Principal.NTAccount]).Value
    $queue.SetPermissions($anonymous, [Messaging.MessageQueueAccessRights]::WriteMessage)
}

function New-Formatter([string] $Name) {
    switch ($Name) {
        'xml' { [Messaging.XmlMessageFormatter]::new([type[]] @([string])) }
        'activex' { [Messaging.ActiveXMessageFormatter]::new() }
        'binary' { [Messaging.BinaryMessageFormatter]::new() }
    }
}

function Send-Message([string] $Queue, [string] $Kind, [string] $Formatter, [string] $Label, [bool] $Asks) {
    $name = "FormatName:DIRECT=TCP:$Receiver\private$\$Queue"
    $text = "text of $Label, with <&> and " + [char] 0x20AC
    $target = [Messaging.MessageQueue]::new($name)
    $message = [Messaging.Message]::new($text, (New-Formatter $Formatter))
    $message.Label = $Label
    $message.Recoverable = $Kind -ne 'express'
    $message.TimeToReachQueue = [timespan]::FromSeconds($Seconds)
    if ($Asks) {
        $message.AdministrationQueue = [Messaging.MessageQueue]::new($Admin)
        $message.AcknowledgeType = [Messaging.AcknowledgeTypes] 'FullReachQueue, FullReceive'
        $message.UseJournalQueue = $true
        $message.UseDeadLetterQueue = $true
    }
    if ($Kind -eq 'transactional') {
        $target.Send($message, [Messaging.MessageQueueTransactionType]::Single)
    }
    else {
        $target.Send($message)
    }
    [pscustomobject] @{
        label = $Label; queue = "DIRECT=TCP:$Receiver\private$\$Queue"; kind = $Kind; formatter = $Formatter
        text = $text; asks = $Asks; missing = $Queue -eq 'recorded_missing'; message_id = $message.Id
    }
}

function Receive-Messages([string] $Path, [int] $Most) {
    $queue = [Messaging.MessageQueue]::new($Path)
    $queue.MessageReadPropertyFilter.SetAll()
    $until = (Get-Date).AddSeconds($Seconds)
    for ($count = 0; $count -lt $Most -and (Get-Date) -lt $until; ) {
        try {
            $message = $queue.Receive([timespan]::FromSeconds(2))
        }
        catch [Messaging.MessageQueueException] {
            if ($_.Exception.GetBaseException().MessageQueueErrorCode -ne 'IOTimeout') { throw }
            continue
        }
        $count++
        $body = [IO.MemoryStream]::new()
        $message.BodyStream.CopyTo($body)
        [pscustomobject] @{
            queue = $Path; label = $message.Label; body = ([BitConverter]::ToString($body.ToArray()) -replace '-').ToLower()
            acknowledgment = "$($message.Acknowledgment)"; correlation_id = $message.CorrelationId
            message_type = "$($message.MessageType)"
        }
    }
}

# Queues, and the capture of all packets of port 1801
New-Queue $Plain $false
New-Queue $Transactional $true
New-Queue $Admin $false
$etl = Join-Path $Folder 'capture.etl'
pktmon filter remove | Out-Null
pktmon filter add msmqwire -p 1801 | Out-Null
pktmon start --capture --comp nics --pkt-size 0 --file-name $etl | Out-Null
if ($LASTEXITCODE -ne 0) {
    throw "pktmon cannot start a capture: exit status $LASTEXITCODE"
}
try {
    # Each form: express, recoverable and transactional by each formatter, with acknowledgments, and to a missing queue
    $sent = @(
        foreach ($kind in 'express', 'recoverable', 'transactional') {
            $queue = if ($kind -eq 'transactional') { 'recorded_tx' } else { 'recorded' }
            foreach ($formatter in 'xml', 'activex', 'binary') {
                Send-Message $queue $kind $formatter "$kind-$formatter" $false
            }
            Send-Message $queue $kind 'xml' "$kind-asks" $true
        }
        Send-Message 'recorded_missing' 'recoverable' 'xml' 'recoverable-missing' $true
        Send-Message 'recorded_missing' 'transactional' 'xml' 'transactional-missing' $true
    )
    Write-Rows 'sent.jsonl' $sent

    # What msmqwire is to send
    $replies = @(1..5 | ForEach-Object { [pscustomobject] @{ label = "reply-$_"; body_text = "text of reply $_" } })
    Write-Rows 'replies.jsonl' $replies
    Write-Host "Run both commands of step 3 with $(Join-Path $Folder 'replies.jsonl') now: $Seconds seconds for each queue."
    $received = @(Receive-Messages $Plain 5) + @(Receive-Messages $Transactional 5)
    Write-Rows 'received.jsonl' $received
    Write-Rows 'acknowledgments.jsonl' @(Receive-Messages $Admin 100)
}
finally {
    pktmon stop | Out-Null
    pktmon filter remove | Out-Null
}
pktmon etl2pcap $etl --out (Join-Path $Folder 'capture.pcapng') | Out-Null
Remove-Item $etl

# The lines of the event log, and what this computer is
$events = @(
    foreach ($filter in @{ ProviderName = 'MSMQ' }, @{ LogName = 'Microsoft-Windows-MSMQ/End2End' }) {
        Get-WinEvent -FilterHashtable ($filter + @{ StartTime = $Began }) -ErrorAction SilentlyContinue
    }
)
Write-Rows 'events.jsonl' @($events | ForEach-Object {
        [pscustomobject] @{ time = $_.TimeCreated.ToString('o'); level = $_.LevelDisplayName; id = $_.Id; text = $_.Message }
    })
Write-Rows 'about.jsonl' @([pscustomobject] @{
        windows = [Environment]::OSVersion.VersionString; began = $Began.ToString('o'); receiver = "$Receiver"
    })
Write-Host "Copy the folder rows of $Receiver into $Folder, then: python examples/windows/compare.py $Folder"
